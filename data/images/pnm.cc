#include "data/images/pnm.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "data/images/image_errors.h"
#include "data/images/image_memory.h"

namespace troupe::data {
namespace {

// Digits of a number, leading zeros included, as in PIL.
constexpr int kDigitsMax = 10;
constexpr std::int64_t kSideMax = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kLargestValueMax = 65535;

absl::Status DamagedPnm(absl::string_view name, absl::string_view cause) {
  return DamagedImage(name, "PNM", cause);
}

absl::Status LacksPnmPixels(absl::string_view name) {
  return DamagedPnm(name, "pixels are missing at its end");
}

// The text of a file: numbers between spaces, and comments, which end with
// their line and count as a space.
class PnmText {
 public:
  explicit PnmText(absl::Span<const std::uint8_t> bytes) : bytes_(bytes) {}

  // Number of bytes that were read.
  std::size_t at() const { return at_; }

  // Returns a digit, of which the next needs no space apart, or nullopt: the
  // file ends, or something else is there.
  std::optional<std::int64_t> Digit() {
    SkipSpaces();
    if (!IsDigit()) return std::nullopt;
    return bytes_[at_++] - '0';
  }

  // Returns a number, behind which a space or the end of the file was read, or
  // nullopt: as above, or it has too many digits.
  std::optional<std::int64_t> Number() {
    SkipSpaces();
    std::int64_t number = 0;
    int digits = 0;
    for (; IsDigit() && digits < kDigitsMax; ++digits) {
      number = number * 10 + (bytes_[at_++] - '0');
    }
    if (digits == 0 || !(at_ == bytes_.size() || SkipSpace())) {
      return std::nullopt;
    }
    return number;
  }

  bool AtEnd() {
    SkipSpaces();
    return at_ == bytes_.size();
  }

 private:
  bool IsDigit() const {
    return at_ < bytes_.size() && absl::ascii_isdigit(bytes_[at_]);
  }

  // Reads a space or a comment with the end of its line, if there is one.
  bool SkipSpace() {
    if (at_ == bytes_.size()) return false;
    if (bytes_[at_] == '#') {
      while (at_ < bytes_.size() && bytes_[at_] != '\n' &&
             bytes_[at_] != '\r') {
        ++at_;
      }
      at_ += at_ < bytes_.size() ? 1 : 0;
      return true;
    }
    if (!absl::ascii_isspace(bytes_[at_])) return false;
    ++at_;
    return true;
  }

  void SkipSpaces() {
    while (SkipSpace()) {
    }
  }

  const absl::Span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

struct PnmHeader {
  char kind = '6';  // the digit of the magic
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::int64_t largest = 1;   // the value of white; 1 in P1 and P4
  std::size_t pixels_at = 0;  // byte of the file

  bool is_text() const { return kind <= '3'; }
  bool has_bits() const { return kind == '1' || kind == '4'; }
  std::int64_t channels() const {
    return kind == '3' || kind == '6' ? kImageChannels : 1;
  }
  std::int64_t row_samples() const { return width * channels(); }
  // Bytes of a row of a file that is no text.
  std::int64_t row_bytes() const {
    if (has_bits()) return (width + 7) / 8;
    return row_samples() * (largest > 255 ? 2 : 1);
  }
};

absl::StatusOr<PnmHeader> ReadPnmHeader(absl::Span<const std::uint8_t> bytes,
                                        absl::string_view name) {
  constexpr std::size_t kMagicBytes = 2;
  PnmHeader header;
  header.kind = static_cast<char>(bytes[1]);
  PnmText text(bytes.subspan(kMagicBytes));
  struct Field {
    absl::string_view what;
    std::int64_t& value;
    std::int64_t max;
  };
  const Field fields[] = {{"width", header.width, kSideMax},
                          {"height", header.height, kSideMax},
                          {"largest value", header.largest, kLargestValueMax}};
  for (const Field& field :
       absl::MakeConstSpan(fields).first(header.has_bits() ? 2 : 3)) {
    if (text.AtEnd()) return DamagedPnm(name, "it ends in its header");
    const std::optional<std::int64_t> value = text.Number();
    if (!value.has_value() || *value < 1 || *value > field.max) {
      return DamagedPnm(
          name, absl::StrCat("its ", field.what, " is no number from 1 to ",
                             field.max));
    }
    field.value = *value;
  }
  header.pixels_at = kMagicBytes + text.at();
  return header;
}

// Returns 0..255 for each value that two bytes, or one, can have.
std::vector<std::uint8_t> ScaledValues(std::int64_t largest) {
  std::vector<std::uint8_t> scaled(largest > 255 ? 65536 : 256);
  for (std::size_t value = 0; value < scaled.size(); ++value) {
    const double part =
        static_cast<double>(value) / static_cast<double>(largest);
    scaled[value] =
        static_cast<std::uint8_t>(std::min(255.0, std::nearbyint(part * 255)));
  }
  return scaled;
}

// Reads the samples of one row to `to`, one by one.
void ReadBits(absl::Span<const std::uint8_t> from,
              absl::Span<std::uint8_t> to) {
  for (std::size_t x = 0; x < to.size(); ++x) {
    const bool is_black = (from[x / 8] >> (7 - x % 8) & 1) != 0;
    to[x] = is_black ? 0 : 255;
  }
}

void ReadBytes(absl::Span<const std::uint8_t> from,
               const std::vector<std::uint8_t>& scaled,
               absl::Span<std::uint8_t> to) {
  const bool has_two = scaled.size() > 256;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t value =
        has_two ? std::size_t{from[2 * i]} << 8 | std::size_t{from[2 * i + 1]}
                : std::size_t{from[i]};
    to[i] = scaled[value];
  }
}

absl::Status ReadTextRow(const PnmHeader& header, absl::string_view name,
                         const std::vector<std::uint8_t>& scaled, PnmText& text,
                         absl::Span<std::uint8_t> to) {
  for (std::uint8_t& sample : to) {
    if (text.AtEnd()) return LacksPnmPixels(name);
    const std::optional<std::int64_t> value =
        header.has_bits() ? text.Digit() : text.Number();
    if (!value.has_value() || *value > header.largest) {
      return DamagedPnm(name, absl::StrCat("a value is no number from 0 to ",
                                           header.largest));
    }
    sample = scaled[static_cast<std::size_t>(*value)];
    if (header.has_bits()) sample = 255 - sample;  // 1 is black
  }
  return absl::OkStatus();
}

// Whether so many bytes can have all pixels: each sample of a text has one, and
// those that are no bits have a space between them.
bool CanHoldPixels(const PnmHeader& header, std::size_t data_bytes) {
  const auto size = static_cast<std::int64_t>(data_bytes);
  if (!header.is_text()) return header.row_bytes() * header.height <= size;
  const std::int64_t samples = header.row_samples() * header.height;
  return (header.has_bits() ? samples : 2 * samples - 1) <= size;
}

// Writes the samples of a row, in its place or grey, to the pixels.
void PutPnmRow(absl::Span<const std::uint8_t> samples, std::int64_t channels,
               std::uint8_t* to) {
  for (const std::uint8_t sample : samples) {
    to = std::fill_n(to, kImageChannels / channels, sample);
  }
}

absl::Status DecodeRows(const PnmHeader& header,
                        absl::Span<const std::uint8_t> data,
                        absl::string_view name, Image& image) {
  const std::vector<std::uint8_t> scaled = ScaledValues(header.largest);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(header.row_samples()));
  PnmText text(data);
  for (std::int64_t y = 0; y < header.height; ++y) {
    if (header.is_text()) {
      TROUPE_RETURN_IF_ERROR(
          ReadTextRow(header, name, scaled, text, absl::MakeSpan(row)));
    } else {
      const auto row_bytes = static_cast<std::size_t>(header.row_bytes());
      const absl::Span<const std::uint8_t> from =
          data.subspan(static_cast<std::size_t>(y) * row_bytes, row_bytes);
      if (header.has_bits()) {
        ReadBits(from, absl::MakeSpan(row));
      } else {
        ReadBytes(from, scaled, absl::MakeSpan(row));
      }
    }
    PutPnmRow(row, header.channels(),
              image.pixels.data() + y * image.width * kImageChannels);
  }
  return absl::OkStatus();
}

}  // namespace

bool IsPnm(absl::Span<const std::uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 'P' && bytes[1] >= '1' &&
         bytes[1] <= '6' && (absl::ascii_isspace(bytes[2]) || bytes[2] == '#');
}

absl::StatusOr<Image> DecodePnm(absl::Span<const std::uint8_t> bytes,
                                absl::string_view name) {
  TROUPE_ASSIGN_OR_RETURN(const PnmHeader header, ReadPnmHeader(bytes, name));
  TROUPE_RETURN_IF_ERROR(CheckImageSize(header.height, header.width, name));
  const absl::Span<const std::uint8_t> data = bytes.subspan(header.pixels_at);
  if (!CanHoldPixels(header, data.size())) return LacksPnmPixels(name);
  TROUPE_ASSIGN_OR_RETURN(Image image,
                          MakeImage(header.height, header.width, name));
  TROUPE_RETURN_IF_ERROR(DecodeRows(header, data, name, image));
  return image;
}

}  // namespace troupe::data

#include "data/images/bmp.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "data/images/bmp_header.h"
#include "data/images/image_errors.h"
#include "data/images/image_memory.h"

namespace troupe::data {
namespace {

absl::Status LacksPixels(absl::string_view name) {
  return DamagedImage(name, "BMP", "pixels are missing at its end");
}

// The pixels of an image, by the rows of the file.
class BmpCanvas {
 public:
  BmpCanvas(const BmpHeader& header, Image& image)
      : header_(header), image_(image) {}

  std::uint8_t* row(std::int64_t number) {
    const std::int64_t y =
        header_.is_top_down ? number : image_.height - 1 - number;
    return image_.pixels.data() + y * image_.width * kImageChannels;
  }

  void Fill(std::size_t colour) { FillImage(header_.palette[colour], image_); }

  void PutColour(std::int64_t row_number, std::int64_t x, std::size_t colour) {
    const auto& rgb = header_.palette[colour];
    std::copy(rgb.begin(), rgb.end(), row(row_number) + x * kImageChannels);
  }

 private:
  const BmpHeader& header_;
  Image& image_;
};

// Scales the bits of a mask in a pixel to 0..255, rounding down as PIL does.
class MaskedChannel {
 public:
  explicit MaskedChannel(std::uint32_t mask) : mask_(mask) {
    while ((mask >> shift_ & 1) == 0) ++shift_;
    max_ = mask >> shift_;
  }

  std::uint8_t Of(std::uint32_t pixel) const {
    const std::uint64_t value = (pixel & mask_) >> shift_;
    return static_cast<std::uint8_t>(value * 255 / max_);
  }

 private:
  std::uint32_t mask_;
  std::uint32_t max_;
  int shift_ = 0;
};

void PutNumberedRow(const BmpHeader& header, const std::uint8_t* from,
                    std::int64_t row, BmpCanvas& canvas) {
  const int per_byte = 8 / header.bits;
  const int all = (1 << header.bits) - 1;
  for (std::int64_t x = 0; x < header.width; ++x) {
    // The leftmost pixel has the highest bits.
    const int place = per_byte - 1 - static_cast<int>(x % per_byte);
    const int number = from[x / per_byte] >> (place * header.bits) & all;
    canvas.PutColour(row, x, static_cast<std::size_t>(number));
  }
}

void PutMaskedRow(const BmpHeader& header, const std::uint8_t* from,
                  std::uint8_t* to) {
  const MaskedChannel channels[] = {MaskedChannel(header.masks[0]),
                                    MaskedChannel(header.masks[1]),
                                    MaskedChannel(header.masks[2])};
  const int pixel_bytes = header.bits / 8;
  for (std::int64_t x = 0; x < header.width; ++x) {
    std::uint32_t pixel = 0;
    for (int i = 0; i < pixel_bytes; ++i) {
      pixel |= std::uint32_t{*from++} << (8 * i);
    }
    for (const MaskedChannel& channel : channels) *to++ = channel.Of(pixel);
  }
}

// Number of bytes from one plain row to the next: rows begin at multiples of
// four.
std::int64_t PlainRowBytes(const BmpHeader& header) {
  return (header.width * header.bits + 31) / 32 * 4;
}

// Whether so many bytes can have all pixels. Runs can: they may leave out any.
bool CanHoldPixels(const BmpHeader& header, std::size_t data_bytes) {
  if (header.coding != BmpCoding::kPlain) return true;
  const std::int64_t last_bytes = (header.width * header.bits + 7) / 8;
  return PlainRowBytes(header) * (header.height - 1) + last_bytes <=
         static_cast<std::int64_t>(data_bytes);
}

void DecodePlain(const BmpHeader& header, absl::Span<const std::uint8_t> data,
                 BmpCanvas& canvas) {
  for (std::int64_t row = 0; row < header.height; ++row) {
    const std::uint8_t* from = data.data() + row * PlainRowBytes(header);
    if (header.bits <= 8) {
      PutNumberedRow(header, from, row, canvas);
    } else {
      PutMaskedRow(header, from, canvas.row(row));
    }
  }
}

// Run-length encoded pixels: pairs of a count and colours, or of a zero and a
// command ("Bitmap Compression", Microsoft). Pixels beside a row are dropped.
class RunDecoder {
 public:
  RunDecoder(const BmpHeader& header, absl::Span<const std::uint8_t> data,
             BmpCanvas& canvas)
      : header_(header), data_(data), canvas_(canvas) {}

  // Returns false if the data end before the command that ends them, and
  // before the last row is full.
  bool Decode() {
    canvas_.Fill(/*colour=*/0);
    while (!IsFull()) {
      if (data_.size() - at_ < 2) return false;
      const int count = data_[at_], value = data_[at_ + 1];
      at_ += 2;
      if (count > 0) {
        for (int i = 0; i < count; ++i) Put(PartOf(value, i));
      } else if (value == kEndOfImage) {
        return true;
      } else if (value == kEndOfRow) {
        x_ = 0;
        ++row_;
      } else if (value == kMove) {
        if (data_.size() - at_ < 2) return false;
        x_ += data_[at_];
        row_ += data_[at_ + 1];
        at_ += 2;
      } else if (!PutSingly(value)) {
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr int kEndOfRow = 0, kEndOfImage = 1, kMove = 2;

  bool IsFull() const {
    return row_ >= header_.height ||
           (row_ == header_.height - 1 && x_ >= header_.width);
  }

  // Returns pixel `i` of those that alternate between the parts of a byte.
  int PartOf(int byte, int i) const {
    if (header_.coding == BmpCoding::kRuns8) return byte;
    return i % 2 == 0 ? byte >> 4 : byte & 15;
  }

  void Put(int colour) {
    if (row_ < header_.height && x_ < header_.width) {
      canvas_.PutColour(row_, x_, static_cast<std::size_t>(colour));
    }
    ++x_;
  }

  // Puts `count` pixels that have a number each. Their bytes are padded to two.
  bool PutSingly(int count) {
    const int per_byte = header_.coding == BmpCoding::kRuns8 ? 1 : 2;
    const auto bytes =
        static_cast<std::size_t>((count + per_byte - 1) / per_byte);
    if (bytes > data_.size() - at_) return false;
    for (int i = 0; i < count; ++i) {
      const std::size_t byte = at_ + static_cast<std::size_t>(i / per_byte);
      Put(PartOf(data_[byte], i));
    }
    at_ = std::min(data_.size(), at_ + bytes + bytes % 2);
    return true;
  }

  const BmpHeader& header_;
  const absl::Span<const std::uint8_t> data_;
  BmpCanvas& canvas_;
  std::size_t at_ = 0;
  // The pixel that comes next; either may lie outside.
  std::int64_t row_ = 0;
  std::int64_t x_ = 0;
};

}  // namespace

bool IsBmp(absl::Span<const std::uint8_t> bytes) {
  return bytes.size() >= 18 && bytes[0] == 'B' && bytes[1] == 'M' &&
         bytes[15] == 0 && bytes[16] == 0 && bytes[17] == 0;
}

absl::StatusOr<Image> DecodeBmp(absl::Span<const std::uint8_t> bytes,
                                absl::string_view name) {
  TROUPE_ASSIGN_OR_RETURN(const BmpHeader header, ReadBmpHeader(bytes, name));
  TROUPE_RETURN_IF_ERROR(CheckImageSize(header.height, header.width, name));
  if (header.pixels_at > bytes.size()) return LacksPixels(name);
  const absl::Span<const std::uint8_t> data = bytes.subspan(header.pixels_at);
  if (!CanHoldPixels(header, data.size())) return LacksPixels(name);
  TROUPE_ASSIGN_OR_RETURN(Image image,
                          MakeImage(header.height, header.width, name));
  BmpCanvas canvas(header, image);
  if (header.coding == BmpCoding::kPlain) {
    DecodePlain(header, data, canvas);
  } else if (!RunDecoder(header, data, canvas).Decode()) {
    return LacksPixels(name);
  }
  return image;
}

}  // namespace troupe::data

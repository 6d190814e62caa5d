#include "data/images/bmp_header.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "data/images/image_errors.h"

namespace troupe::data {
namespace {

using Bytes8 = absl::Span<const std::uint8_t>;

// Sizes of the header of the file, of the smallest and of the usual header of
// the image, and of one with masks.
constexpr std::size_t kFileHeaderBytes = 14;
constexpr std::size_t kCoreHeaderBytes = 12;
constexpr std::size_t kInfoHeaderBytes = 40;
constexpr std::size_t kMaskHeaderBytes = 52;
constexpr std::size_t kMasksBytes = 12;
// Size of the header of OS/2 2, whose codings have other numbers.
constexpr std::size_t kOs2HeaderBytes = 64;
constexpr std::size_t kHeaderSizes[] = {kCoreHeaderBytes,
                                        kInfoHeaderBytes,
                                        kMaskHeaderBytes,
                                        56,
                                        kOs2HeaderBytes,
                                        108,
                                        124};

enum Compression : std::uint32_t {
  kRgb = 0,
  kRle8 = 1,
  kRle4 = 2,
  kBitFields = 3,
};

std::uint32_t U16(Bytes8 bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} | std::uint32_t{bytes[at + 1]} << 8;
}

std::uint32_t U32(Bytes8 bytes, std::size_t at) {
  return U16(bytes, at) | U16(bytes, at + 2) << 16;
}

absl::Status UnreadBmp(absl::string_view name, absl::string_view kind) {
  return UnreadKind(name, "BMP", kind);
}

// Fields of the headers, before checks of their relations.
struct RawHeader {
  std::size_t header_bytes = 0;
  std::uint32_t compression = kRgb;
  std::uint32_t colours = 0;     // size of the palette; 0: 2^bits
  std::size_t colour_bytes = 4;  // size of an entry of the palette
};

// Reads sizes and kind of the image to `header`.
RawHeader ReadFields(Bytes8 bytes, BmpHeader& header) {
  RawHeader raw;
  raw.header_bytes = U32(bytes, kFileHeaderBytes);
  const Bytes8 fields = bytes.subspan(kFileHeaderBytes);
  if (raw.header_bytes == kCoreHeaderBytes) {
    header.width = U16(fields, 4);
    header.height = U16(fields, 6);
    header.bits = static_cast<int>(U16(fields, 10));
    raw.colour_bytes = 3;
    return raw;
  }
  header.width = static_cast<std::int32_t>(U32(fields, 4));
  header.height = static_cast<std::int32_t>(U32(fields, 8));
  header.is_top_down = header.height < 0;
  if (header.is_top_down) header.height = -header.height;
  header.bits = static_cast<int>(U16(fields, 14));
  raw.compression = U32(fields, 16);
  raw.colours = U32(fields, 32);
  return raw;
}

absl::Status SetCoding(const RawHeader& raw, absl::string_view name,
                       BmpHeader& header) {
  constexpr int kBits[] = {1, 4, 8, 16, 24, 32};
  if (std::find(std::begin(kBits), std::end(kBits), header.bits) ==
      std::end(kBits)) {
    return UnreadBmp(name, absl::StrCat(header.bits, " bits a pixel"));
  }
  if (raw.compression == kRgb) return absl::OkStatus();
  if (raw.compression == kRle8 && header.bits == 8) {
    header.coding = BmpCoding::kRuns8;
    return absl::OkStatus();
  }
  if (raw.compression == kRle4 && header.bits == 4) {
    header.coding = BmpCoding::kRuns4;
    return absl::OkStatus();
  }
  if (raw.compression == kBitFields && header.bits > 8 &&
      raw.header_bytes != kOs2HeaderBytes) {
    return absl::OkStatus();
  }
  return UnreadBmp(name, absl::StrCat("compression ", raw.compression, " of ",
                                      header.bits, " bits a pixel"));
}

// Returns whether the bits of a mask lie side by side in a pixel of `bits`.
bool IsContiguous(std::uint32_t mask, int bits) {
  if (mask == 0 || (bits < 32 && mask >> bits != 0)) return false;
  const std::uint32_t low = mask & -mask;
  return (mask & (mask + low)) == 0;
}

// Sets the masks, which may follow the header at `at`; moves `at` behind them.
absl::Status SetMasks(Bytes8 bytes, const RawHeader& raw,
                      absl::string_view name, std::size_t& at,
                      BmpHeader& header) {
  if (header.bits == 16) {
    header.masks = {0x7c00, 0x3e0, 0x1f};
  } else {
    header.masks = {0xff0000, 0xff00, 0xff};
  }
  if (raw.compression != kBitFields) return absl::OkStatus();
  std::size_t masks_at = kFileHeaderBytes + kInfoHeaderBytes;
  if (raw.header_bytes < kMaskHeaderBytes) {
    masks_at = at;
    at += kMasksBytes;
    if (at > bytes.size()) {
      return DamagedImage(name, "BMP", "it ends in its masks");
    }
  }
  std::array<std::uint32_t, kImageChannels> masks = {};
  for (std::size_t c = 0; c < masks.size(); ++c) {
    masks[c] = U32(bytes, masks_at + 4 * c);
  }
  // Some writers leave the masks of ordinary pixels out.
  if (header.bits == 32 && masks == decltype(masks){}) return absl::OkStatus();
  for (const std::uint32_t mask : masks) {
    if (IsContiguous(mask, header.bits)) continue;
    return UnreadBmp(
        name, absl::StrCat("a colour with the mask 0x", absl::Hex(mask), " of ",
                           header.bits, " bits"));
  }
  header.masks = masks;
  return absl::OkStatus();
}

// Sets the palette, which begins at `at`; moves `at` behind it.
absl::Status SetPalette(Bytes8 bytes, const RawHeader& raw,
                        absl::string_view name, std::size_t& at,
                        BmpHeader& header) {
  constexpr std::uint32_t kColoursMax = 1 << 16;  // more than any number needs
  const std::uint32_t colours =
      raw.colours == 0 ? std::uint32_t{1} << header.bits : raw.colours;
  if (colours > kColoursMax) {
    return DamagedImage(name, "BMP",
                        absl::StrCat("a palette of ", colours, " colours"));
  }
  const std::size_t size = colours * raw.colour_bytes;
  if (size > bytes.size() - at) {
    return DamagedImage(name, "BMP", "it ends in its palette");
  }
  const std::size_t count =
      std::min<std::size_t>(colours, header.palette.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Bytes8 entry = bytes.subspan(at + i * raw.colour_bytes, 3);
    header.palette[i] = {entry[2], entry[1], entry[0]};
  }
  at += size;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BmpHeader> ReadBmpHeader(absl::Span<const std::uint8_t> bytes,
                                        absl::string_view name) {
  TROUPE_CHECK(bytes.size() >= kFileHeaderBytes + 4, "IsBmp() saw the size");
  const std::size_t size = U32(bytes, kFileHeaderBytes);
  if (std::find(std::begin(kHeaderSizes), std::end(kHeaderSizes), size) ==
      std::end(kHeaderSizes)) {
    return UnreadBmp(name, absl::StrCat("a header of ", size, " bytes"));
  }
  std::size_t at = kFileHeaderBytes + size;
  if (at > bytes.size()) {
    return DamagedImage(name, "BMP", "it ends in its header");
  }
  BmpHeader header;
  const RawHeader raw = ReadFields(bytes, header);
  TROUPE_RETURN_IF_ERROR(SetCoding(raw, name, header));
  TROUPE_RETURN_IF_ERROR(SetMasks(bytes, raw, name, at, header));
  const std::size_t palette_at = at;
  if (header.bits <= 8) {
    TROUPE_RETURN_IF_ERROR(SetPalette(bytes, raw, name, at, header));
  }
  header.pixels_at = U32(bytes, 10);
  // Some writers name no place, or that of the palette.
  if (header.pixels_at == 0 ||
      (header.bits <= 8 && header.pixels_at == palette_at)) {
    header.pixels_at = at;
  }
  return header;
}

}  // namespace troupe::data

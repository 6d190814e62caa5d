#include "data/images/tiff_samples.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "data/images/decode.h"
#include "data/images/image_errors.h"

namespace troupe::data {
namespace {

// Limit on the samples of a pixel; PIL reads up to 6.
constexpr int kTiffSamplesMax = 8;
// Limit on the bytes of all strips or tiles, as a multiple of the file: several
// may have the same bytes, such as blank ones, and each is decoded.
constexpr std::uint64_t kTiffSharedBytesMax = 16;

absl::Status UnreadTiff(const TiffFile& file, absl::string_view kind) {
  return UnreadKind(file.name(), "TIFF", kind);
}

bool IsReadCompression(std::uint16_t compression) {
  switch (compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
    case COMPRESSION_LZW:
    case COMPRESSION_JPEG:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_PACKBITS:
    case COMPRESSION_ZSTD:
      return TIFFIsCODECConfigured(compression) != 0;
    default:
      return false;
  }
}

// Sets what a pixel is made of and how many samples that takes.
absl::Status SetColours(const TiffFile& file, TiffLayout& layout) {
  std::uint16_t photometric = PHOTOMETRIC_MINISWHITE;  // if there is none
  TIFFGetField(file.get(), TIFFTAG_PHOTOMETRIC, &photometric);
  int bits_max = 16;
  switch (photometric) {
    case PHOTOMETRIC_MINISWHITE:
      layout.colours = TiffColours::kInvertedGrey;
      break;
    case PHOTOMETRIC_MINISBLACK:
      layout.colours = TiffColours::kGrey;
      break;
    case PHOTOMETRIC_PALETTE:
      layout.colours = TiffColours::kPalette;
      bits_max = 8;
      break;
    case PHOTOMETRIC_RGB:
      layout.colours = TiffColours::kRgb;
      layout.wanted = 3;
      break;
    case PHOTOMETRIC_SEPARATED:
      if (file.Short(TIFFTAG_INKSET) != INKSET_CMYK) {
        return UnreadTiff(file, "inks other than CMYK");
      }
      layout.colours = TiffColours::kCmyk;
      layout.wanted = 4;
      break;
    case PHOTOMETRIC_YCBCR:
      layout.colours = TiffColours::kYcbcr;
      layout.wanted = 3;
      bits_max = 8;
      break;
    default:
      return UnreadTiff(file,
                        absl::StrCat("colours of the kind ", photometric));
  }
  const int bits_min = layout.wanted == 1 ? 1 : 8;
  if (layout.bits < bits_min || layout.bits > bits_max ||
      (layout.bits & (layout.bits - 1)) != 0) {
    return UnreadTiff(file, absl::StrCat("samples of ", layout.bits, " bits"));
  }
  if (layout.samples < layout.wanted || layout.samples > kTiffSamplesMax) {
    return UnreadTiff(file, absl::StrCat(layout.samples, " samples a pixel"));
  }
  return absl::OkStatus();
}

// Sets whether alpha, which follows grey or RGB, is multiplied in.
void SetAlpha(const TiffFile& file, TiffLayout& layout) {
  const bool may_have = layout.colours == TiffColours::kGrey ||
                        layout.colours == TiffColours::kRgb;
  std::uint16_t count = 0;
  const std::uint16_t* kinds = nullptr;
  if (!may_have || layout.samples == layout.wanted || layout.bits < 8 ||
      TIFFGetField(file.get(), TIFFTAG_EXTRASAMPLES, &count, &kinds) != 1 ||
      count < 1 || kinds[0] != EXTRASAMPLE_ASSOCALPHA) {
    return;
  }
  layout.has_multiplied_alpha = true;
  ++layout.wanted;
}

// Copies the samples of pixels from a row of a strip or tile.
class SampleCopier {
 public:
  explicit SampleCopier(const TiffLayout& layout) : layout_(layout) {
    const bool is_number = layout.colours == TiffColours::kPalette;
    const int max = (1 << std::min(layout.bits, 8)) - 1;
    scale_ = is_number ? 1 : 255 / max;
  }

  // Copies `count` pixels from `row`, which has all samples of a pixel side by
  // side, or those of `plane` alone.
  void Copy(const std::uint8_t* row, std::int64_t count, int plane,
            std::uint8_t* to) const {
    const int stride = layout_.is_planar ? 1 : layout_.samples;
    const int copied = layout_.is_planar ? 1 : layout_.wanted;
    if (layout_.bits == 8 && stride == layout_.wanted) {
      std::memcpy(to, row, static_cast<std::size_t>(count * stride));
      return;
    }
    if (layout_.is_planar) to += plane;
    for (std::int64_t x = 0; x < count; ++x) {
      for (int c = 0; c < copied; ++c) to[c] = Sample(row, x * stride + c);
      to += layout_.wanted;
    }
  }

 private:
  std::uint8_t Sample(const std::uint8_t* row, std::int64_t index) const {
    if (layout_.bits == 8) return row[index];
    if (layout_.bits == 16) {
      std::uint16_t value = 0;  // libtiff has swapped its bytes
      std::memcpy(&value, row + 2 * index, sizeof(value));
      return static_cast<std::uint8_t>(value >> 8);
    }
    const std::int64_t bit = index * layout_.bits;
    const int below = 8 - layout_.bits - static_cast<int>(bit % 8);
    const int value = row[bit / 8] >> below & ((1 << layout_.bits) - 1);
    return static_cast<std::uint8_t>(value * scale_);
  }

  const TiffLayout& layout_;
  int scale_ = 1;
};

absl::Status CheckBlock(const TiffFile& file, std::uint64_t bytes) {
  if (bytes > 0 && bytes <= std::uint64_t{kTiffBlockBytesMax}) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(file.name(), ": a row or tile of ", bytes,
                   " bytes is more than the limit of ", kTiffBlockBytesMax,
                   "; convert it to a TIFF of smaller ones, or to PNG"));
}

// Checks that the strips or tiles have no more bytes than the file can share.
absl::Status CheckSharing(const TiffFile& file) {
  TIFF* tiff = file.get();
  const std::uint32_t count = TIFFIsTiled(tiff) != 0 ? TIFFNumberOfTiles(tiff)
                                                     : TIFFNumberOfStrips(tiff);
  const std::uint64_t bytes_max = kTiffSharedBytesMax * file.size();
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    sum += std::min(bytes_max + 1, TIFFGetStrileByteCount(tiff, i));
    if (sum > bytes_max) {
      return DamagedImage(file.name(), "TIFF",
                          "its strips or tiles have more bytes than the file");
    }
  }
  return absl::OkStatus();
}

// Checks the pixels of all tiles, which are decoded whole even where they lie
// outside the image.
absl::Status CheckTiles(const TiffFile& file, const TiffLayout& layout) {
  const std::int64_t height = file.Long(TIFFTAG_TILELENGTH);
  const std::int64_t width = file.Long(TIFFTAG_TILEWIDTH);
  if (height < 1 || width < 1) {
    return DamagedImage(file.name(), "TIFF", "its tiles have no size");
  }
  const std::int64_t rows = (layout.height + height - 1) / height;
  const std::int64_t columns = (layout.width + width - 1) / width;
  const std::int64_t pixels_wide = std::max<std::int64_t>(1, columns * width);
  if (rows * height <= kImagePixelsMax / pixels_wide) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(file.name(), ": ", rows, " x ", columns, " tiles of ", width,
                   " x ", height, " pixels have more than the limit of ",
                   kImagePixelsMax, "; make it smaller or remove it"));
}

int PlanesOf(const TiffLayout& layout) {
  return layout.is_planar ? layout.wanted : 1;
}

absl::Status ReadStrips(TiffFile& file, const TiffLayout& layout,
                        std::vector<std::uint8_t>& samples) {
  const auto row_bytes =
      static_cast<std::uint64_t>(TIFFScanlineSize64(file.get()));
  TROUPE_RETURN_IF_ERROR(CheckBlock(file, row_bytes));
  std::vector<std::uint8_t> row(row_bytes);
  const SampleCopier copier(layout);
  // The rows of a plane must be read in order.
  for (int plane = 0; plane < PlanesOf(layout); ++plane) {
    for (std::int64_t y = 0; y < layout.height; ++y) {
      if (TIFFReadScanline(file.get(), row.data(),
                           static_cast<std::uint32_t>(y),
                           static_cast<std::uint16_t>(plane)) != 1) {
        return file.Error();
      }
      copier.Copy(row.data(), layout.width, plane,
                  samples.data() + y * layout.width * layout.wanted);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadTiles(TiffFile& file, const TiffLayout& layout,
                       std::vector<std::uint8_t>& samples) {
  TIFF* tiff = file.get();
  const std::int64_t tile_height = file.Long(TIFFTAG_TILELENGTH);
  const std::int64_t tile_width = file.Long(TIFFTAG_TILEWIDTH);
  const std::uint64_t tile_bytes = TIFFTileSize64(tiff);
  TROUPE_RETURN_IF_ERROR(CheckBlock(file, tile_bytes));
  const std::uint64_t row_bytes = TIFFTileRowSize64(tiff);
  TROUPE_CHECK(
      row_bytes * static_cast<std::uint64_t>(tile_height) <= tile_bytes,
      "the rows of a tile");
  std::vector<std::uint8_t> tile(tile_bytes);
  const SampleCopier copier(layout);
  for (int plane = 0; plane < PlanesOf(layout); ++plane) {
    for (std::int64_t top = 0; top < layout.height; top += tile_height) {
      for (std::int64_t left = 0; left < layout.width; left += tile_width) {
        if (TIFFReadTile(tiff, tile.data(), static_cast<std::uint32_t>(left),
                         static_cast<std::uint32_t>(top), /*z=*/0,
                         static_cast<std::uint16_t>(plane)) < 0) {
          return file.Error();
        }
        const std::int64_t bottom = std::min(layout.height, top + tile_height);
        const std::int64_t width = std::min(layout.width - left, tile_width);
        for (std::int64_t y = top; y < bottom; ++y) {
          copier.Copy(
              tile.data() + (y - top) * row_bytes, width, plane,
              samples.data() + (y * layout.width + left) * layout.wanted);
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TiffLayout> LayoutOf(TiffFile& file) {
  TiffLayout layout;
  layout.height = file.Long(TIFFTAG_IMAGELENGTH);
  layout.width = file.Long(TIFFTAG_IMAGEWIDTH);
  layout.bits = file.Short(TIFFTAG_BITSPERSAMPLE);
  layout.samples = file.Short(TIFFTAG_SAMPLESPERPIXEL);
  layout.is_planar = file.Short(TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE;
  const std::uint16_t compression = file.Short(TIFFTAG_COMPRESSION);
  if (!IsReadCompression(compression)) {
    return UnreadTiff(file, absl::StrCat("compression ", compression));
  }
  if (file.Short(TIFFTAG_SAMPLEFORMAT) != SAMPLEFORMAT_UINT) {
    return UnreadTiff(file, "samples that are no unsigned integers");
  }
  TROUPE_RETURN_IF_ERROR(SetColours(file, layout));
  SetAlpha(file, layout);
  if (layout.colours == TiffColours::kYcbcr &&
      compression == COMPRESSION_JPEG && !layout.is_planar) {
    TIFFSetField(file.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    layout.colours = TiffColours::kRgb;
  }
  TROUPE_RETURN_IF_ERROR(CheckSharing(file));
  if (TIFFIsTiled(file.get()) != 0) {
    TROUPE_RETURN_IF_ERROR(CheckTiles(file, layout));
  }
  return layout;
}

absl::StatusOr<std::vector<std::uint8_t>> ReadTiffSamples(
    TiffFile& file, const TiffLayout& layout) {
  std::vector<std::uint8_t> samples(
      static_cast<std::size_t>(layout.height * layout.width * layout.wanted));
  TROUPE_RETURN_IF_ERROR(TIFFIsTiled(file.get()) != 0
                             ? ReadTiles(file, layout, samples)
                             : ReadStrips(file, layout, samples));
  return samples;
}

}  // namespace troupe::data

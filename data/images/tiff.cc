#include "data/images/tiff.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/check.h"
#include "data/images/image_errors.h"
#include "data/images/image_memory.h"
#include "data/images/tiff_file.h"
#include "data/images/tiff_samples.h"

namespace troupe::data {
namespace {

// Converts the samples of a pixel, `layout.wanted`, to RGB.
class TiffConverter {
 public:
  TiffConverter(const TiffFile& file, const TiffLayout& layout)
      : layout_(layout) {
    if (layout.colours != TiffColours::kPalette) return;
    const std::uint16_t* maps[kImageChannels] = {};
    if (TIFFGetField(file.get(), TIFFTAG_COLORMAP, &maps[0], &maps[1],
                     &maps[2]) != 1) {
      return;
    }
    has_palette_ = true;
    for (std::size_t i = 0; i < std::size_t{1} << layout.bits; ++i) {
      for (std::size_t c = 0; c < kImageChannels; ++c) {
        palette_[i][c] = static_cast<std::uint8_t>(maps[c][i] >> 8);
      }
    }
  }

  // Whether a palette is there if one is needed.
  bool IsComplete() const {
    return has_palette_ || layout_.colours != TiffColours::kPalette;
  }

  void Convert(const std::uint8_t* from, std::uint8_t* to) const {
    switch (layout_.colours) {
      case TiffColours::kGrey:
        std::fill_n(to, kImageChannels, Divided(from, 0));
        return;
      case TiffColours::kInvertedGrey:
        std::fill_n(to, kImageChannels, static_cast<std::uint8_t>(~from[0]));
        return;
      case TiffColours::kPalette:
        std::copy(palette_[from[0]].begin(), palette_[from[0]].end(), to);
        return;
      case TiffColours::kCmyk:
        for (int c = 0; c < kImageChannels; ++c)
          to[c] = Inked(from[c], from[3]);
        return;
      case TiffColours::kRgb:
      case TiffColours::kYcbcr:
        for (int c = 0; c < kImageChannels; ++c) to[c] = Divided(from, c);
        return;
    }
  }

 private:
  // Returns a sample, divided by the alpha that is multiplied in, if there is.
  std::uint8_t Divided(const std::uint8_t* from, int sample) const {
    if (!layout_.has_multiplied_alpha) return from[sample];
    const int alpha = from[layout_.wanted - 1];
    if (alpha == 0) return 0;
    return static_cast<std::uint8_t>(std::min(255, from[sample] * 255 / alpha));
  }

  // Returns what two inks leave of white (255: all ink), rounded as in PIL.
  static std::uint8_t Inked(int ink, int black) {
    const int left = 255 - black;
    return static_cast<std::uint8_t>(left - (2 * ink * left + 255) / 510);
  }

  const TiffLayout& layout_;
  bool has_palette_ = false;
  std::array<std::array<std::uint8_t, kImageChannels>, 256> palette_ = {};
};

// Decodes YCbCr that is not compressed by JPEG. libtiff converts it.
absl::Status ReadYcbcr(TiffFile& file, std::uint16_t orientation,
                       Image& image) {
  std::vector<std::uint32_t> raster(image.pixels.size() / kImageChannels);
  // Asked for the orientation that the file has, it turns nothing.
  if (TIFFReadRGBAImageOriented(file.get(),
                                static_cast<std::uint32_t>(image.width),
                                static_cast<std::uint32_t>(image.height),
                                raster.data(), orientation, /*stop=*/1) != 1) {
    return file.Error();
  }
  std::uint8_t* to = image.pixels.data();
  for (const std::uint32_t pixel : raster) {
    *to++ = static_cast<std::uint8_t>(TIFFGetR(pixel));
    *to++ = static_cast<std::uint8_t>(TIFFGetG(pixel));
    *to++ = static_cast<std::uint8_t>(TIFFGetB(pixel));
  }
  return absl::OkStatus();
}

absl::Status ReadColours(TiffFile& file, const TiffLayout& layout,
                         Image& image) {
  const TiffConverter converter(file, layout);
  if (!converter.IsComplete()) {
    return DamagedImage(file.name(), "TIFF", "its palette is missing");
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> samples,
                          ReadTiffSamples(file, layout));
  const std::uint8_t* from = samples.data();
  for (std::size_t i = 0; i < image.pixels.size(); i += kImageChannels) {
    converter.Convert(from, image.pixels.data() + i);
    from += layout.wanted;
  }
  return absl::OkStatus();
}

// Returns the image with its first row at the top and its first column at the
// left. `orientation` says where they are in the file (TIFF 6.0, page 36).
Image Upright(std::uint16_t orientation, Image image) {
  if (orientation <= ORIENTATION_TOPLEFT || orientation > ORIENTATION_LEFTBOT) {
    return image;
  }
  const bool swaps = orientation >= ORIENTATION_LEFTTOP;
  const bool from_right = orientation == ORIENTATION_TOPRIGHT ||
                          orientation == ORIENTATION_BOTRIGHT ||
                          orientation == ORIENTATION_RIGHTBOT ||
                          orientation == ORIENTATION_LEFTBOT;
  const bool from_bottom = orientation == ORIENTATION_BOTRIGHT ||
                           orientation == ORIENTATION_BOTLEFT ||
                           orientation == ORIENTATION_RIGHTTOP ||
                           orientation == ORIENTATION_RIGHTBOT;
  Image turned;
  turned.height = swaps ? image.width : image.height;
  turned.width = swaps ? image.height : image.width;
  turned.pixels.resize(image.pixels.size());
  std::uint8_t* to = turned.pixels.data();
  for (std::int64_t y = 0; y < turned.height; ++y) {
    for (std::int64_t x = 0; x < turned.width; ++x) {
      const std::int64_t row = swaps ? x : y;
      const std::int64_t column = swaps ? y : x;
      const std::uint8_t* pixel =
          image.at(from_bottom ? image.height - 1 - row : row,
                   from_right ? image.width - 1 - column : column);
      to = std::copy_n(pixel, kImageChannels, to);
    }
  }
  return turned;
}

}  // namespace

bool IsTiff(absl::Span<const std::uint8_t> bytes) {
  if (bytes.size() < 4) return false;
  const bool is_little = bytes[0] == 'I' && bytes[1] == 'I' && bytes[3] == 0;
  const bool is_big = bytes[0] == 'M' && bytes[1] == 'M' && bytes[2] == 0;
  const int version = is_little ? bytes[2] : bytes[3];
  constexpr int kClassic = 42, kBigTiff = 43;
  return (is_little || is_big) && (version == kClassic || version == kBigTiff);
}

absl::StatusOr<Image> DecodeTiff(absl::Span<const std::uint8_t> bytes,
                                 absl::string_view name) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<TiffFile> file,
                          TiffFile::Open(bytes, name));
  TROUPE_ASSIGN_OR_RETURN(const TiffLayout layout, LayoutOf(*file));
  TROUPE_ASSIGN_OR_RETURN(Image image,
                          MakeImage(layout.height, layout.width, name));
  const std::uint16_t orientation = file->Short(TIFFTAG_ORIENTATION);
  file->ForgetMessages();
  TROUPE_RETURN_IF_ERROR(layout.colours == TiffColours::kYcbcr
                             ? ReadYcbcr(*file, orientation, image)
                             : ReadColours(*file, layout, image));
  TROUPE_RETURN_IF_ERROR(file->NoWarning());
  return Upright(orientation, std::move(image));
}

}  // namespace troupe::data

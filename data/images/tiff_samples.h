// The samples of a TIFF file, such as red or black, before they become RGB; a
// part of DecodeTiff().
//
//   TROUPE_ASSIGN_OR_RETURN(const TiffLayout layout, LayoutOf(*file));
//   TROUPE_ASSIGN_OR_RETURN(std::vector<std::uint8_t> samples,
//                           ReadTiffSamples(*file, layout));
//   samples.size();                          // height * width * layout.wanted
//
// Errors: see DecodeImage().

#ifndef DATA_IMAGES_TIFF_SAMPLES_H_
#define DATA_IMAGES_TIFF_SAMPLES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "data/images/tiff_file.h"

namespace troupe::data {

// The meaning of the samples of a pixel.
enum class TiffColours { kGrey, kInvertedGrey, kPalette, kRgb, kCmyk, kYcbcr };

struct TiffLayout {
  std::int64_t height = 0;
  std::int64_t width = 0;
  TiffColours colours = TiffColours::kGrey;
  int bits = 8;     // size of a sample
  int samples = 1;  // number in a pixel of the file
  // Number of samples of a pixel that are used, the first ones of the file.
  int wanted = 1;
  // Whether the last of them is alpha by which the others are multiplied.
  bool has_multiplied_alpha = false;
  bool is_planar = false;  // each sample has a plane of its own
};

// Returns the layout, and sets libtiff up to convert YCbCr that JPEG has
// compressed: then `colours` is kRgb. The size is not checked.
absl::StatusOr<TiffLayout> LayoutOf(TiffFile& file);

// Returns [height, width, wanted] samples: colour numbers, or 0..255. `layout`
// has kImagePixelsMax pixels at most, and other colours than kYcbcr.
absl::StatusOr<std::vector<std::uint8_t>> ReadTiffSamples(
    TiffFile& file, const TiffLayout& layout);

}  // namespace troupe::data

#endif  // DATA_IMAGES_TIFF_SAMPLES_H_

// Images and image files for the tests of data/images, made by the encoders of
// the libraries that decode them.
//
//   const Image image = Pattern(7, 9);
//   const Bytes png = EncodePng(image);
//   const Bytes jpeg = EncodeJpeg(image, /*quality=*/95);

#ifndef TESTS_DATA_IMAGES_ENCODE_H_
#define TESTS_DATA_IMAGES_ENCODE_H_

#include <cstdint>

#include "data/images/decode.h"
#include "tests/data/test_util.h"

namespace troupe::data {

// Returns an image whose channel c of pixel (y, x) is
// (37 y + 53 x + 71 c + 5 x y c) mod 256.
Image Pattern(std::int64_t height, std::int64_t width);
// Returns an image whose pixels are equal.
Image Plain(std::int64_t height, std::int64_t width, std::uint8_t red,
            std::uint8_t green, std::uint8_t blue);

Bytes EncodeJpeg(const Image& image, int quality);
Bytes EncodeProgressiveJpeg(const Image& image, int quality);
// Encodes a JPEG file with the colours of a printer, from [H, W, 4] bytes.
Bytes EncodeCmykJpeg(std::int64_t height, std::int64_t width,
                     const Bytes& cmyk);
Bytes EncodeGreyJpeg(std::int64_t height, std::int64_t width,
                     const Bytes& grey);

Bytes EncodePng(const Image& image);
// Encodes `pixels` in PNG's own layout. `color`: one of spng_color_type.
Bytes EncodePngAs(std::int64_t height, std::int64_t width, int color,
                  int bit_depth, const Bytes& pixels);

}  // namespace troupe::data

#endif  // TESTS_DATA_IMAGES_ENCODE_H_

#include "tests/data/images/encode.h"

#include <spng.h>
#include <turbojpeg.h>

#include <cstdlib>

#include "gtest/gtest.h"

namespace troupe::data {
namespace {

Bytes Compress(std::int64_t height, std::int64_t width, TJPF format,
               const std::uint8_t* pixels, TJSAMP sampling, int quality,
               int flags = 0) {
  const tjhandle jpeg = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;
  EXPECT_EQ(tjCompress2(jpeg, pixels, static_cast<int>(width), 0,
                        static_cast<int>(height), format, &out, &size, sampling,
                        quality, TJFLAG_ACCURATEDCT | flags),
            0)
      << tjGetErrorStr2(jpeg);
  Bytes bytes(out, out + size);
  tjFree(out);
  tjDestroy(jpeg);
  return bytes;
}

}  // namespace

Image Pattern(std::int64_t height, std::int64_t width) {
  Image image;
  image.height = height;
  image.width = width;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t c = 0; c < kImageChannels; ++c) {
        image.pixels.push_back(static_cast<std::uint8_t>(
            (37 * y + 53 * x + 71 * c + 5 * x * y * c) % 256));
      }
    }
  }
  return image;
}

Image Plain(std::int64_t height, std::int64_t width, std::uint8_t red,
            std::uint8_t green, std::uint8_t blue) {
  Image image;
  image.height = height;
  image.width = width;
  for (std::int64_t i = 0; i < height * width; ++i) {
    image.pixels.insert(image.pixels.end(), {red, green, blue});
  }
  return image;
}

Bytes EncodeJpeg(const Image& image, int quality) {
  return Compress(image.height, image.width, TJPF_RGB, image.pixels.data(),
                  TJSAMP_420, quality);
}

Bytes EncodeProgressiveJpeg(const Image& image, int quality) {
  return Compress(image.height, image.width, TJPF_RGB, image.pixels.data(),
                  TJSAMP_444, quality, TJFLAG_PROGRESSIVE);
}

Bytes EncodeCmykJpeg(std::int64_t height, std::int64_t width,
                     const Bytes& cmyk) {
  return Compress(height, width, TJPF_CMYK, cmyk.data(), TJSAMP_444, 100);
}

Bytes EncodeGreyJpeg(std::int64_t height, std::int64_t width,
                     const Bytes& grey) {
  return Compress(height, width, TJPF_GRAY, grey.data(), TJSAMP_GRAY, 100);
}

Bytes EncodePng(const Image& image) {
  return EncodePngAs(image.height, image.width, SPNG_COLOR_TYPE_TRUECOLOR, 8,
                     image.pixels);
}

Bytes EncodePngAs(std::int64_t height, std::int64_t width, int color,
                  int bit_depth, const Bytes& pixels) {
  spng_ctx* png = spng_ctx_new(SPNG_CTX_ENCODER);
  EXPECT_EQ(spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1), 0);
  spng_ihdr header{};
  header.height = static_cast<std::uint32_t>(height);
  header.width = static_cast<std::uint32_t>(width);
  header.color_type = static_cast<std::uint8_t>(color);
  header.bit_depth = static_cast<std::uint8_t>(bit_depth);
  EXPECT_EQ(spng_set_ihdr(png, &header), 0);
  EXPECT_EQ(spng_encode_image(png, pixels.data(), pixels.size(), SPNG_FMT_PNG,
                              SPNG_ENCODE_FINALIZE),
            0);
  std::size_t size = 0;
  int error = 0;
  void* out = spng_get_png_buffer(png, &size, &error);
  EXPECT_EQ(error, 0) << spng_strerror(error);
  const auto* first = static_cast<const std::uint8_t*>(out);
  Bytes bytes(first, first + size);
  std::free(out);
  spng_ctx_free(png);
  return bytes;
}

}  // namespace troupe::data

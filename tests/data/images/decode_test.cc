#include "data/images/decode.h"

#include <spng.h>

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/images/encode.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Image Decoded(const Bytes& bytes) {
  auto image = DecodeImage(bytes, "it");
  EXPECT_TRUE(image.ok()) << image.status();
  return image.ok() ? *std::move(image) : Image();
}

std::string Error(const Bytes& bytes) {
  return std::string(DecodeImage(bytes, "it").status().message());
}

TEST(DecodeTest, PngIsExact) {
  const Image image = Pattern(7, 9);
  const Image decoded = Decoded(EncodePng(image));
  EXPECT_EQ(decoded.height, 7);
  EXPECT_EQ(decoded.width, 9);
  EXPECT_EQ(decoded.pixels, image.pixels);
}

TEST(DecodeTest, JpegIsNear) {
  const Image plain = Plain(17, 20, 200, 100, 50);
  const Image decoded = Decoded(EncodeJpeg(plain, 95));
  EXPECT_EQ(decoded.height, 17);
  EXPECT_EQ(decoded.width, 20);
  ASSERT_EQ(decoded.pixels.size(), plain.pixels.size());
  for (std::size_t i = 0; i < plain.pixels.size(); ++i) {
    EXPECT_LE(std::abs(decoded.pixels[i] - plain.pixels[i]), 3);
  }
}

TEST(DecodeTest, GreyBecomesRgb) {
  EXPECT_THAT(
      Decoded(EncodePngAs(1, 2, SPNG_COLOR_TYPE_GRAYSCALE, 8, {7, 250})).pixels,
      ElementsAre(7, 7, 7, 250, 250, 250));
  const Image jpeg = Decoded(EncodeGreyJpeg(8, 8, Bytes(64, 90)));
  EXPECT_EQ(jpeg.pixels, Bytes(192, 90));
}

TEST(DecodeTest, AlphaIsDropped) {
  EXPECT_THAT(Decoded(EncodePngAs(1, 1, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 8,
                                  {1, 2, 3, 0}))
                  .pixels,
              ElementsAre(1, 2, 3));
}

TEST(DecodeTest, SixteenBitsKeepTheUpperEight) {
  // The encoder takes numbers as the machine has them, least byte first.
  EXPECT_THAT(Decoded(EncodePngAs(1, 1, SPNG_COLOR_TYPE_TRUECOLOR, 16,
                                  {0x34, 0x12, 0xff, 0x00, 0x01, 0xfe}))
                  .pixels,
              ElementsAre(0x12, 0x00, 0xfe));
}

// Inks of 255 are no ink, as Adobe writes them.
TEST(DecodeTest, CmykIsMultipliedOut) {
  Bytes cmyk;
  for (int i = 0; i < 64; ++i) cmyk.insert(cmyk.end(), {255, 128, 0, 200});
  const Image image = Decoded(EncodeCmykJpeg(8, 8, cmyk));
  ASSERT_EQ(image.pixels.size(), 192u);
  EXPECT_NEAR(image.pixels[0], 200, 2);
  EXPECT_NEAR(image.pixels[1], 100, 2);
  EXPECT_NEAR(image.pixels[2], 0, 2);
}

TEST(DecodeTest, OtherFilesAreRefused) {
  const std::string neither =
      "it: neither a JPEG nor a PNG file; convert or remove it";
  EXPECT_EQ(Error({}), neither);
  EXPECT_EQ(Error({'G', 'I', 'F', '8', '9', 'a'}), neither);
  EXPECT_EQ(DecodeImage({}, "it").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(DecodeTest, TruncatedFilesAreErrors) {
  for (Bytes bytes :
       {EncodeJpeg(Pattern(64, 64), 90), EncodePng(Pattern(64, 64))}) {
    bytes.resize(bytes.size() / 2);
    EXPECT_EQ(DecodeImage(bytes, "it").status().code(),
              absl::StatusCode::kDataLoss);
    EXPECT_THAT(Error(bytes), HasSubstr("it: damaged "));
  }
}

TEST(DecodeTest, ADamagedChecksumIsAnError) {
  Bytes bytes = EncodePng(Pattern(16, 16));
  bytes[bytes.size() - 20] ^= 1;
  EXPECT_THAT(Error(bytes), HasSubstr("it: damaged PNG: "));
}

// Headers of a few bytes that declare gigabytes.
TEST(DecodeTest, SizesAreLimited) {
  Bytes jpeg = EncodeJpeg(Plain(8, 8, 0, 0, 0), 90);
  for (std::size_t i = 0; i + 9 < jpeg.size(); ++i) {
    if (jpeg[i] != 0xff || jpeg[i + 1] != 0xc0) continue;  // start of frame
    jpeg[i + 5] = jpeg[i + 7] = 0xf0;                      // 61,440 and a few
    break;
  }
  EXPECT_EQ(Error(jpeg),
            "it: 61448 x 61448 pixels are more than the limit of 67108864");
  EXPECT_EQ(DecodeImage(jpeg, "it").status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(DecodeTest, StrayBytesBeforeAMarkerAreNoError) {
  Bytes jpeg = EncodeJpeg(Pattern(32, 32), 90);
  const std::size_t end = jpeg.size() - 2;  // before the end of image
  jpeg.insert(jpeg.begin() + static_cast<std::ptrdiff_t>(end), 5, 0);
  EXPECT_TRUE(DecodeImage(jpeg, "it").ok());
}

}  // namespace
}  // namespace troupe::data

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
  EXPECT_THAT(Decoded(EncodePngAs(1, 1, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 16,
                                  {0xff, 0x80, 0x00, 0x01, 0x7f, 0x7f, 0, 0}))
                  .pixels,
              ElementsAre(0x80, 0x01, 0x7f));
  EXPECT_THAT(Decoded(EncodePngAs(1, 2, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 16,
                                  {0xff, 0x34, 9, 9, 0x00, 0xa0, 0xff, 0xff}))
                  .pixels,
              ElementsAre(0x34, 0x34, 0x34, 0xa0, 0xa0, 0xa0));
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
  const std::string none = "not a JPEG, PNG, WebP, GIF, TIFF, BMP or PNM file";
  EXPECT_EQ(Error({'G', 'I', 'F'}), "it: " + none + "; convert or remove it");
  EXPECT_EQ(Error({}), "it: an empty file, " + none + "; replace or remove it");
  EXPECT_EQ(Error(BytesOfText("....ftypavif....")),
            "it: an AVIF image, " + none + "; convert or remove it");
  EXPECT_EQ(Error(BytesOfText("BM is what this text begins with")),
            "it: " + none + "; convert or remove it");
  EXPECT_EQ(Error(BytesOfText(kLfsPointer)),
            "it: a pointer of git-lfs, " + none +
                "; fetch the file itself (git lfs pull)");
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
            "it: 61448 x 61448 pixels are more than the limit of 67108864; "
            "make it smaller or remove it");
  EXPECT_EQ(DecodeImage(jpeg, "it").status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(DecodeTest, StrayBytesBeforeAMarkerAreNoError) {
  Bytes jpeg = EncodeJpeg(Pattern(32, 32), 90);
  const std::size_t end = jpeg.size() - 2;  // before the end of image
  jpeg.insert(jpeg.begin() + static_cast<std::ptrdiff_t>(end), 5, 0);
  EXPECT_TRUE(DecodeImage(jpeg, "it").ok());
}

// Returns where the first segment of this marker begins, with its 0xff.
std::size_t SegmentAt(const Bytes& jpeg, std::uint8_t marker) {
  for (std::size_t at = 2; at + 3 < jpeg.size();) {
    if (jpeg[at + 1] == marker) return at;
    at += 2 + (std::size_t{jpeg[at + 2]} << 8 | jpeg[at + 3]);
  }
  ADD_FAILURE() << "no marker " << int{marker};
  return 2;
}

Bytes Inserted(Bytes bytes, std::size_t at, const Bytes& more) {
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), more.begin(),
               more.end());
  return bytes;
}

constexpr std::uint8_t kApp0 = 0xe0, kStartOfScan = 0xda;

// Returns the first byte of the data of the first scan.
std::size_t ScanDataAt(const Bytes& jpeg) {
  const std::size_t at = SegmentAt(jpeg, kStartOfScan);
  return at + 2 + (std::size_t{jpeg[at + 2]} << 8 | jpeg[at + 3]);
}

// Returns a file whose last spectral coefficient, which a sequential decoder
// does not need, is `value`.
Bytes WithSpectralEnd(Bytes jpeg, std::uint8_t value) {
  jpeg[ScanDataAt(jpeg) - 2] = value;
  return jpeg;
}

// Returns a file without the segment of JFIF, but with Adobe's.
Bytes WithAdobeTransform(Bytes jpeg, std::uint8_t transform) {
  const std::size_t at = SegmentAt(jpeg, kApp0);
  jpeg.erase(jpeg.begin() + 2, jpeg.begin() + static_cast<long>(at) + 18);
  return Inserted(jpeg, 2,
                  {0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0,
                   0, transform});
}

Bytes WithJfifVersion(Bytes jpeg, std::uint8_t major) {
  jpeg[SegmentAt(jpeg, kApp0) + 9] = major;
  return jpeg;
}

// Returns the place after the first scan of a progressive file.
std::size_t FirstScanEnd(const Bytes& jpeg) {
  std::size_t at = ScanDataAt(jpeg);
  while (jpeg[at] != 0xff || jpeg[at + 1] == 0) ++at;
  return at;
}

// Returns files of which a decoder warns without losing a pixel.
std::vector<Bytes> Oddities(const Bytes& jpeg) {
  return {WithSpectralEnd(jpeg, 0),
          WithSpectralEnd(jpeg, 17),
          WithAdobeTransform(jpeg, 7),
          WithAdobeTransform(jpeg, 200),
          WithJfifVersion(jpeg, 9),
          WithSpectralEnd(WithAdobeTransform(jpeg, 3), 1),
          Inserted(jpeg, jpeg.size() - 2, {1, 2, 3})};
}

TEST(DecodeTest, OdditiesOfJpegsCostNoPixel) {
  for (const Image& image : {Pattern(24, 40), Plain(9, 5, 30, 200, 90)}) {
    const Bytes jpeg = EncodeJpeg(image, 90);
    for (const Bytes& odd : Oddities(jpeg)) {
      EXPECT_EQ(Decoded(odd).pixels, Decoded(jpeg).pixels);
    }
  }
}

// The loss is not the first thing that these decoders warn of.
TEST(DecodeTest, OdditiesOfJpegsHideNoLoss) {
  for (Bytes odd : Oddities(EncodeJpeg(Pattern(64, 64), 95))) {
    odd.resize(odd.size() * 2 / 3);
    EXPECT_THAT(Error(odd), HasSubstr("it: damaged JPEG: Premature end"));
  }
  const Bytes scans = EncodeProgressiveJpeg(Pattern(64, 64), 95);
  const std::size_t end = FirstScanEnd(scans);
  const Bytes stray = Inserted(scans, end, {0, 0, 0});
  EXPECT_EQ(Decoded(stray).pixels, Decoded(scans).pixels);
  for (const std::size_t part : {1, 2, 3}) {
    Bytes cut = stray;
    cut.resize(end + 3 + (stray.size() - end) * part / 4);
    EXPECT_THAT(Error(cut), HasSubstr("it: damaged JPEG: Premature end"));
  }
}

TEST(DecodeTest, OnlyTheEndMarkerMayBeMissing) {
  for (Bytes jpeg : {EncodeJpeg(Pattern(40, 24), 90),
                     EncodeProgressiveJpeg(Pattern(40, 24), 90)}) {
    const Image whole = Decoded(jpeg);
    jpeg.resize(jpeg.size() - 2);
    EXPECT_EQ(Decoded(jpeg).pixels, whole.pixels);
    jpeg.resize(jpeg.size() - 4);
    EXPECT_THAT(Error(jpeg), HasSubstr("it: damaged JPEG: Premature end"));
  }
  // Cut between two scans: no bit of a scan is missing, but scans are.
  Bytes scans = EncodeProgressiveJpeg(Pattern(40, 24), 90);
  scans.resize(FirstScanEnd(scans));
  EXPECT_THAT(Error(scans), HasSubstr("it: damaged JPEG: Premature end"));
}

TEST(DecodeTest, ErrorsOfJpegsSayWhatToDo) {
  Bytes jpeg = EncodeJpeg(Pattern(16, 16), 90);
  Bytes wide = jpeg;
  wide[SegmentAt(wide, 0xc0) + 4] = 12;  // bits of a sample
  EXPECT_EQ(Error(wide),
            "it: a JPEG of a kind that is not read: Unsupported JPEG data "
            "precision 12; convert it to an ordinary JPEG or to PNG");
  jpeg.resize(40);
  EXPECT_THAT(Error(jpeg), HasSubstr("; replace it by a whole copy or remove"));
}

// Returns a chunk of PNG. The checksum is wrong: only who reads it notices.
Bytes Chunk(const std::string& type, const Bytes& content) {
  const std::size_t size = content.size();
  Bytes chunk = {static_cast<std::uint8_t>(size >> 24),
                 static_cast<std::uint8_t>(size >> 16),
                 static_cast<std::uint8_t>(size >> 8),
                 static_cast<std::uint8_t>(size)};
  chunk.insert(chunk.end(), type.begin(), type.end());
  chunk.insert(chunk.end(), content.begin(), content.end());
  chunk.insert(chunk.end(), 4, 0);
  return chunk;
}

TEST(DecodeTest, UnreadChunksArePassedOver) {
  const Image image = Pattern(5, 6);
  const Bytes png = EncodePng(image);
  const std::size_t header_end = 33;
  for (const Bytes& chunk :
       {Chunk("tEXt", Bytes(5 << 20, 'x')), Chunk("eXIf", {}),
        Chunk("tRNS", {1}), Chunk("gAMA", {9}), Chunk("iCCP", Bytes(99, 7)),
        Chunk("abCd", {1, 2, 3})}) {
    EXPECT_EQ(Decoded(Inserted(png, header_end, chunk)).pixels, image.pixels);
    EXPECT_EQ(Decoded(Inserted(png, png.size() - 12, chunk)).pixels,
              image.pixels);
  }
  for (const Bytes& chunk : {Chunk("CgBI", {0, 0, 0, 0}), Chunk("IDAT", {1})}) {
    EXPECT_THAT(Error(Inserted(png, header_end, chunk)),
                HasSubstr("; replace it by a whole copy or remove it"));
  }
}

TEST(DecodeTest, SixteenBitsOfGreyKeepTheUpperEight) {
  EXPECT_THAT(Decoded(EncodePngAs(1, 2, SPNG_COLOR_TYPE_GRAYSCALE, 16,
                                  {0x34, 0x12, 0x01, 0xfe}))
                  .pixels,
              ElementsAre(0x12, 0x12, 0x12, 0xfe, 0xfe, 0xfe));
}

}  // namespace
}  // namespace troupe::data

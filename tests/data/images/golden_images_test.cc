// Images of every kind beside Pillow, and what is refused of them.

#include "tests/data/images/golden_images.h"

#include <sys/resource.h>

#include <thread>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::data {
namespace {

using testing::HasSubstr;

std::string ErrorOfImage(const Bytes& bytes) {
  return std::string(DecodeImage(bytes, "it").status().message());
}

absl::StatusCode CodeOfImage(const Bytes& bytes) {
  return DecodeImage(bytes, "it").status().code();
}

// Replaces bytes of a file, from `at` on.
Bytes Patched(Bytes bytes, std::size_t at, const Bytes& by) {
  EXPECT_LE(at + by.size(), bytes.size());
  std::copy(by.begin(), by.end(),
            bytes.begin() + static_cast<std::ptrdiff_t>(at));
  return bytes;
}

// Returns the byte at which the value of a field of a little-endian TIFF file,
// of at most four bytes, begins.
std::size_t TiffFieldAt(const Bytes& tiff, int tag) {
  const std::size_t directory = tiff[4];
  for (std::size_t i = 0; i < tiff[directory]; ++i) {
    const std::size_t at = directory + 2 + 12 * i;
    if (tiff[at] + 256 * tiff[at + 1] == tag) return at + 8;
  }
  ADD_FAILURE() << "no field " << tag;
  return 0;
}

void ExpectPixelsOf(const std::vector<GoldenImage>& all) {
  ASSERT_GT(all.size(), 80u);
  for (const GoldenImage& golden : all) {
    SCOPED_TRACE(golden.name);
    const auto image = DecodeImage(golden.file, golden.name);
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_EQ(image->height, golden.image.height);
    EXPECT_EQ(image->width, golden.image.width);
    EXPECT_EQ(image->pixels, golden.image.pixels);
  }
}

TEST(GoldenImagesTest, PixelsEqualPillows) {
  ExpectPixelsOf(ReadGoldenImages());
}

TEST(GoldenImagesTest, PixelsOfRandomImagesEqualPillows) {
  const std::vector<GoldenImage> all = MakeGoldenImages();
  if (all.empty()) {
    GTEST_SKIP() << "no Pillow: set TROUPE_PYTHON to a Python that has it";
  }
  ExpectPixelsOf(all);
}

// The errors of a thread's file must not be another's.
TEST(GoldenImagesTest, ThreadsDecodeAtOnce) {
  const std::vector<GoldenImage> all = ReadGoldenImages();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&all, t] {
      for (std::size_t i = 0; i < all.size(); ++i) {
        const GoldenImage& golden = all[(i + t * 20) % all.size()];
        const auto image = DecodeImage(golden.file, golden.name);
        EXPECT_TRUE(image.ok() && image->pixels == golden.image.pixels)
            << golden.name;
        Bytes half = golden.file;
        half.resize(half.size() / 2);
        const absl::Status status = DecodeImage(half, golden.name).status();
        EXPECT_TRUE(absl::StartsWith(status.message(), golden.name)) << status;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A file that was cut has no image, unless all bytes of its pixels are there.
// The last number of a text may lose digits that nobody can miss.
TEST(GoldenImagesTest, TruncatedFilesAreErrors) {
  for (const GoldenImage& golden : ReadGoldenImages()) {
    SCOPED_TRACE(golden.name);
    for (std::size_t size = 18; size < golden.file.size(); ++size) {
      const Bytes part(golden.file.begin(),
                       golden.file.begin() + static_cast<std::ptrdiff_t>(size));
      const auto image = DecodeImage(part, "it");
      if (image.ok() && absl::StartsWith(golden.name, "pnm: text")) {
        EXPECT_GE(size + 5, golden.file.size());
      } else if (image.ok()) {
        EXPECT_EQ(image->pixels, golden.image.pixels) << size;
      } else {
        EXPECT_EQ(image.status().code(), absl::StatusCode::kDataLoss) << size;
        EXPECT_THAT(std::string(image.status().message()),
                    HasSubstr("it: damaged "));
      }
    }
  }
}

TEST(GoldenImagesTest, SizesAreLimited) {
  const std::string limit =
      " pixels are more than the limit of 67108864; make it smaller or remove "
      "it";
  const std::string square = "it: 65535 x 65535" + limit;
  EXPECT_EQ(ErrorOfImage(Patched(GoldenFileOf("gif: no palette"), 6,
                                 {255, 255, 255, 255})),
            square);
  EXPECT_EQ(ErrorOfImage(Patched(GoldenFileOf("bmp: RGB"), 18,
                                 {255, 255, 0, 0, 255, 255, 0, 0})),
            square);
  EXPECT_EQ(ErrorOfImage(Patched(GoldenFileOf("webp: frame on a canvas"), 24,
                                 {254, 255, 0, 254, 255, 0})),
            square);
  EXPECT_EQ(ErrorOfImage(BytesOfText("P6 65535 65535 255\n")), square);
  EXPECT_EQ(ErrorOfImage(BytesOfText("P3 2147483647 2147483647 65535\n1")),
            "it: 2147483647 x 2147483647" + limit);
  Bytes tiff = GoldenFileOf("tiff: RGB raw");
  for (const int tag : {256, 257}) {
    tiff = Patched(tiff, TiffFieldAt(tiff, tag), {255, 255});
  }
  EXPECT_EQ(ErrorOfImage(tiff), square);
  EXPECT_EQ(CodeOfImage(tiff), absl::StatusCode::kResourceExhausted);
}

// A tile is decoded whole, even for an image of one pixel.
TEST(GoldenImagesTest, TilesOfTiffsAreLimited) {
  const Bytes tiff = GoldenFileOf("tiff: tiles");
  EXPECT_EQ(
      ErrorOfImage(Patched(Patched(tiff, TiffFieldAt(tiff, 322), {0, 128}),
                           TiffFieldAt(tiff, 323), {0, 128})),
      "it: 1 x 1 tiles of 32768 x 32768 pixels have more than the limit "
      "of 67108864; make it smaller or remove it");
}

// Strips that share bytes would be decoded again and again.
TEST(GoldenImagesTest, StripsOfTiffsMayNotShareTooMuch) {
  const Bytes tiff = GoldenFileOf("tiff: RGB tiff_lzw");
  EXPECT_EQ(ErrorOfImage(Patched(tiff, TiffFieldAt(tiff, 279), {0, 0, 0, 1})),
            "it: damaged TIFF: its strips or tiles have more bytes than "
            "the file; replace it by a whole copy or remove it");
}

TEST(GoldenImagesTest, OtherKindsAreNamed) {
  const auto of_tiff = [](const std::string& name, int tag, const Bytes& by) {
    const Bytes tiff = GoldenFileOf(name);
    return ErrorOfImage(Patched(tiff, TiffFieldAt(tiff, tag), by));
  };
  const std::string convert = "; convert it to an ordinary JPEG or to PNG";
  const std::string tiff = "it: a TIFF of a kind that is not read: ";
  const std::string grey = "tiff: grey of 4 bits";
  EXPECT_EQ(of_tiff(grey, 259, {6, 0}), tiff + "compression 6" + convert);
  EXPECT_EQ(of_tiff(grey, 258, {12, 0}), tiff + "samples of 12 bits" + convert);
  EXPECT_EQ(of_tiff(grey, 258, {32, 0}), tiff + "samples of 32 bits" + convert);
  EXPECT_EQ(of_tiff(grey, 262, {8, 0}),
            tiff + "colours of the kind 8" + convert);
  EXPECT_EQ(of_tiff(grey, 262, {2, 0}), tiff + "samples of 4 bits" + convert);
  EXPECT_EQ(of_tiff("tiff: tiles", 262, {5, 0}),
            tiff + "3 samples a pixel" + convert);
  EXPECT_EQ(of_tiff(grey, 262, {3, 0}),
            "it: damaged TIFF: TIFF directory is missing required "
            "\"Colormap\" field; replace it by a whole copy or remove it");

  const std::string bmp = "it: a BMP of a kind that is not read: ";
  const Bytes rgb = GoldenFileOf("bmp: RGB");
  EXPECT_EQ(ErrorOfImage(Patched(rgb, 28, {2, 0})),
            bmp + "2 bits a pixel" + convert);
  EXPECT_EQ(ErrorOfImage(Patched(rgb, 30, {4, 0})),
            bmp + "compression 4 of 24 bits a pixel" + convert);
  EXPECT_EQ(ErrorOfImage(Patched(rgb, 14, {16, 0})),
            bmp + "a header of 16 bytes" + convert);
  EXPECT_EQ(
      ErrorOfImage(Patched(GoldenFileOf("bmp: other masks"), 54, {5, 0, 0, 0})),
      bmp + "a colour with the mask 0x5 of 32 bits" + convert);
  EXPECT_EQ(CodeOfImage(Patched(rgb, 14, {16, 0})),
            absl::StatusCode::kUnimplemented);
}

// Largest size so far of the memory of this process.
std::int64_t PeakMemoryKib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// The pixels that these declare would have 192 MiB.
TEST(GoldenImagesTest, PixelsThatAreMissingTakeNoMemory) {
  const std::int64_t before = PeakMemoryKib();
  for (const Bytes& bytes :
       {Patched(GoldenFileOf("bmp: RGB"), 18, {0, 32, 0, 0, 0, 32, 0, 0}),
        Patched(GoldenFileOf("bmp: 1 bit"), 18, {0, 32, 0, 0, 0, 32, 0, 0}),
        BytesOfText("P6 8192 8192 255 abc"),
        BytesOfText("P1 8192 8192 0 1 0")}) {
    EXPECT_THAT(ErrorOfImage(bytes), HasSubstr("pixels are missing"));
  }
  EXPECT_LT(PeakMemoryKib() - before, 100 << 10);
}

TEST(GoldenImagesTest, DamageIsNamed) {
  const std::string copy = "; replace it by a whole copy or remove it";
  Bytes webp = GoldenFileOf("webp: lossy");
  EXPECT_EQ(ErrorOfImage(Patched(webp, 16, {255, 255, 255, 255})),
            "it: damaged WebP: its chunks are broken" + copy);
  EXPECT_EQ(ErrorOfImage(Patched(webp, 23, {0, 0, 0})),
            "it: damaged WebP: its chunks are broken" + copy);
  webp.resize(webp.size() - 9);
  EXPECT_EQ(ErrorOfImage(webp),
            "it: damaged WebP: it is shorter than it declares" + copy);
  EXPECT_EQ(ErrorOfImage(BytesOfText("GIF89a\1")),
            "it: damaged GIF: No screen descriptor detected" + copy);
  const Bytes gif = GoldenFileOf("gif: no palette");
  EXPECT_EQ(ErrorOfImage(Patched(gif, 13, {';'})),
            "it: damaged GIF: it has no frame" + copy);
  EXPECT_EQ(ErrorOfImage(Patched(gif, 13 + 9 + 5, {0, 0})),
            "it: damaged GIF: its first frame has no pixels" + copy);
  Bytes bmp = GoldenFileOf("bmp: RGB");
  bmp.resize(bmp.size() - 9);
  EXPECT_EQ(ErrorOfImage(bmp),
            "it: damaged BMP: pixels are missing at its end" + copy);
  bmp.resize(40);
  EXPECT_EQ(ErrorOfImage(bmp), "it: damaged BMP: it ends in its header" + copy);
  Bytes tiff = GoldenFileOf("tiff: RGB zstd");
  tiff.resize(7);
  EXPECT_EQ(ErrorOfImage(tiff),
            "it: damaged TIFF: Cannot read TIFF header" + copy);
}

TEST(GoldenImagesTest, DamageOfPnmsIsNamed) {
  const std::string damaged = "it: damaged PNM: ";
  const std::string copy = "; replace it by a whole copy or remove it";
  for (const auto& [text, cause] :
       std::vector<std::pair<std::string, std::string>>{
           {"P6 # a comment", "it ends in its header"},
           {"P6\n2 2\n", "it ends in its header"},
           {"P6 0 2 255\n", "its width is no number from 1 to 2147483647"},
           {"P5 2 -2 255\n", "its height is no number from 1 to 2147483647"},
           {"P5 2 00000000002 9",
            "its height is no number from 1 to 2147483647"},
           {"P5 2 2 0 ", "its largest value is no number from 1 to 65535"},
           {"P5 2 2 65536 ", "its largest value is no number from 1 to 65535"},
           {"P5 2 2 255 abc", "pixels are missing at its end"},
           {"P4 9 2 abc", "pixels are missing at its end"},
           {"P2 2 2 255 1 2 3", "pixels are missing at its end"},
           {"P1 2 2 1 0 1 # 0", "pixels are missing at its end"},
           {"P2 2 2 9 1 2 x 3", "a value is no number from 0 to 9"},
           {"P2 2 2 9 1 2 3 10", "a value is no number from 0 to 9"},
           {"P2 2 2 9 1 2 3 12345678901", "a value is no number from 0 to 9"},
           {"P1 2 2 0 1 2 1", "a value is no number from 0 to 1"}}) {
    EXPECT_EQ(ErrorOfImage(BytesOfText(text)), damaged + cause + copy) << text;
    EXPECT_EQ(CodeOfImage(BytesOfText(text)), absl::StatusCode::kDataLoss);
  }
}

// PIL clips such grey.
TEST(GoldenImagesTest, WideGreyOfPnmsIsScaled) {
  const Bytes grey = {0, 0, 0, 128, 128, 128, 255, 255, 255};
  for (const char* text :
       {"P2 3 1 65535 0 32896 65535", "P2 3 1 1000 0 500 1000"}) {
    const auto image = DecodeImage(BytesOfText(text), "it");
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_EQ(image->pixels, grey) << text;
  }
  Bytes bytes = BytesOfText("P5 1 1 65535 ");
  bytes.insert(bytes.end(), {0x80, 0x80});
  EXPECT_EQ(DecodeImage(bytes, "it")->pixels, Bytes(3, 128));
}

}  // namespace
}  // namespace troupe::data

// Damages good image files in thousands of seeded ways: the decoders must
// answer with a status that names the file, or with an image of its size.
// Sanitizers watch the memory. TROUPE_FUZZ_ROUNDS=1000000 is the number of
// files of every kind together, TROUPE_FUZZ_FIRST=1000000 that of the first:
// several processes may share the work.

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "data/images/decode.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "tests/data/images/encode.h"
#include "tests/data/images/golden_images.h"

namespace troupe::data {
namespace {

constexpr std::uint32_t kRounds = 6000;

void Damage(nn::RandomStream& draws, Bytes& bytes) {
  // Headers are hit more often than their size would say.
  const std::size_t reach = draws.Below(2) == 0
                                ? std::min<std::size_t>(64, bytes.size())
                                : bytes.size();
  const std::size_t at = draws.Below(reach);
  const auto where = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (draws.Below(6)) {
    case 0:
      *where = static_cast<std::uint8_t>(draws.Bits32());
      break;
    case 1:
      *where ^= static_cast<std::uint8_t>(1u << draws.Below(8));
      break;
    case 2:
      *where = draws.Below(2) == 0 ? 0 : 255;
      break;
    case 3:
      bytes.resize(at + 1);
      break;
    case 4:
      bytes.insert(where, 1 + draws.Below(8), *where);
      break;
    default:
      bytes.erase(where);
  }
}

// Whether the bytes are taken for an image.
bool Decodes(const Bytes& bytes) {
  const auto image = DecodeImage(bytes, "fuzz");
  if (!image.ok()) {
    EXPECT_EQ(image.status().message().substr(0, 5), "fuzz:");
    EXPECT_EQ(image.status().message().find('\n'), absl::string_view::npos);
    EXPECT_LT(image.status().message().size(), 400u);
    return false;
  }
  EXPECT_LE(image->height * image->width, kImagePixelsMax);
  EXPECT_EQ(static_cast<std::int64_t>(image->pixels.size()),
            image->height * image->width * kImageChannels);
  return true;
}

// Returns whether a file is taken for an image after the damage of a round.
bool DecodesDamaged(Bytes bytes, std::uint32_t round) {
  nn::RandomStream draws(nn::RandomKey(/*seed=*/7, nn::Purpose::kTest),
                         {round, 0, 0});
  const std::uint64_t times = 1 + draws.Below(3);
  for (std::uint64_t i = 0; i < times && !bytes.empty(); ++i) {
    Damage(draws, bytes);
  }
  return Decodes(bytes);
}

void Fuzz(const Bytes& good) {
  ASSERT_TRUE(Decodes(good));
  std::uint32_t accepted = 0;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    accepted += DecodesDamaged(good, round);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_LT(accepted, kRounds);
}

TEST(DecodeFuzz, Jpeg) { Fuzz(EncodeJpeg(Pattern(24, 20), 80)); }

TEST(DecodeFuzz, Png) { Fuzz(EncodePng(Pattern(24, 20))); }

TEST(DecodeFuzz, CmykJpeg) {
  Fuzz(EncodeCmykJpeg(16, 16, Bytes(16 * 16 * 4, 77)));
}

std::uint32_t NumberOf(const char* variable, std::uint32_t otherwise) {
  std::uint32_t number = 0;
  const char* const text = std::getenv(variable);
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number
                                                            : otherwise;
}

TEST(DecodeFuzz, EveryKind) {
  const std::vector<GoldenImage> all = ReadGoldenImages();
  const std::uint32_t rounds = NumberOf("TROUPE_FUZZ_ROUNDS", 40000);
  const std::uint32_t first = NumberOf("TROUPE_FUZZ_FIRST", 0);
  std::uint32_t accepted = 0;
  for (std::uint32_t round = first; round < first + rounds; ++round) {
    const GoldenImage& golden = all[round % all.size()];
    accepted += DecodesDamaged(golden.file, round);
    if (testing::Test::HasFailure()) {
      FAIL() << "round " << round << ", " << golden.name;
    }
  }
  EXPECT_GT(accepted, rounds / 100);
  EXPECT_LT(accepted, rounds);
}

}  // namespace
}  // namespace troupe::data

// Files that were valid once: thousands of seeded mutations of each, which the
// parsers must answer with a Status or with arrays of the right size.
// TROUPE_FUZZ_ROUNDS=10000000 is the number of mutations of each.

#include <cmath>
#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "data/cifar10.h"
#include "data/gzip.h"
#include "data/idx.h"
#include "data/mnist.h"
#include "data/sample_weights.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "tests/data/test_util.h"
#include "tests/nn/serialize/one_file.h"

namespace troupe::data {
namespace {

const int kMutations = [] {
  int rounds = 0;
  const char* const text = std::getenv("TROUPE_FUZZ_ROUNDS");
  return text != nullptr && absl::SimpleAtoi(text, &rounds) ? rounds : 20000;
}();
constexpr std::uint64_t kSeed = 20240607;

Bytes Noise(std::size_t size) {
  nn::RandomStream draws(nn::RandomKey(kSeed, nn::Purpose::kTest), {});
  Bytes bytes(size);
  for (std::uint8_t& byte : bytes) {
    byte = static_cast<std::uint8_t>(draws.Bits32() % 10);
  }
  return bytes;
}

// One to four changes: a byte set, a bit turned, the end cut off, bytes
// doubled or taken out. Headers are hit more often than their size would say.
Bytes Mutated(Bytes bytes, nn::RandomStream& draws) {
  const std::uint64_t changes = 1 + draws.Below(4);
  for (std::uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
    const std::size_t reach = draws.Below(2) == 0
                                  ? std::min<std::size_t>(24, bytes.size())
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
        bytes.resize(at);
        break;
      case 4:
        bytes.insert(where, 1 + draws.Below(8), *where);
        break;
      default:
        bytes.erase(where);
    }
  }
  return bytes;
}

// Calls `parse` with every mutation of `valid`; it returns whether it accepted
// the bytes. Some must be accepted and some refused, or the fuzzer is blind.
template <typename Parse>
void Fuzz(const Bytes& valid, int mutations, Parse parse) {
  ASSERT_TRUE(parse(valid));
  int accepted = 0;
  for (int i = 0; i < mutations; ++i) {
    nn::RandomPosition position;
    position.position = static_cast<std::uint32_t>(i);
    nn::RandomStream draws(nn::RandomKey(kSeed, nn::Purpose::kTest), position);
    SCOPED_TRACE("mutation " + std::to_string(i));
    accepted += parse(Mutated(valid, draws));
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, mutations);
}

bool ParsesIdx(const Bytes& bytes) {
  const auto file = ParseIdxFile(bytes, "fuzz");
  if (!file.ok()) {
    EXPECT_EQ(file.status().message().substr(0, 4), "fuzz");
    return false;
  }
  EXPECT_EQ(static_cast<std::int64_t>(file->array.values.size()),
            file->array.shape.numel());
  int sum = 0;
  for (std::uint8_t value : file->array.values) sum += value;
  return sum >= 0;
}

TEST(ParserFuzzTest, Idx) {
  Fuzz(MakeIdx({3, 4, 5}, Noise(60)), kMutations, ParsesIdx);
  Fuzz(MakeIdx({2, 3, 2, 2}, Noise(24)), kMutations, ParsesIdx);
}

TEST(ParserFuzzTest, PackedIdx) {
  Fuzz(Gzip(MakeIdx({3, 4, 5}, Noise(60))), kMutations, ParsesIdx);
}

TEST(ParserFuzzTest, IdxInsideValidGzip) {
  Fuzz(MakeIdx({3, 4, 5}, Noise(60)), kMutations / 4,
       [](const Bytes& bytes) { return ParsesIdx(Gzip(bytes)); });
}

TEST(ParserFuzzTest, GzipNeverExceedsItsLimit) {
  Fuzz(Gzip(Noise(3000)), kMutations, [](const Bytes& bytes) {
    const auto plain = Gunzip(bytes, "fuzz", 3000);
    EXPECT_LE(plain.ok() ? plain->size() : 0, 3000u);
    return plain.ok();
  });
}

TEST(ParserFuzzTest, MnistLabels) {
  const auto images = ParseIdxFile(MakeIdx({20, 2, 2}, Noise(80)), "images");
  ASSERT_TRUE(images.ok()) << images.status();
  Fuzz(MakeIdx({20}, Noise(20)), kMutations, [&](const Bytes& bytes) {
    const auto labels = ParseIdxFile(bytes, "labels");
    if (!labels.ok()) return false;
    const auto joined = JoinMnist(*images, *labels);
    if (!joined.ok()) return false;
    return MakeImageDataset(*joined, {}).ok();
  });
}

TEST(ParserFuzzTest, Cifar10) {
  Fuzz(Noise(2 * kCifar10RecordBytes), kMutations / 10, [](const Bytes& bytes) {
    ByteImages images;
    if (!ParseCifar10(bytes, "fuzz", images).ok()) {
      EXPECT_TRUE(images.labels.empty());
      return false;
    }
    return MakeImageDataset(images, {}).ok();
  });
}

// Weights as text, among them numbers that are hardly any.
TEST(ParserFuzzTest, SampleWeights) {
  static constexpr std::int64_t kSamples = 9;
  Fuzz(BytesOfText("1\n0.5\n2e-3\n\n 0 \n7\r\n1e308\n5e-324\n0x1p3\n+4"),
       kMutations, [](const Bytes& bytes) {
         nn::OneFile files(std::string(bytes.begin(), bytes.end()));
         const auto read = ReadSampleWeights(files, "fuzz", kSamples);
         const auto weights =
             read.ok() ? SampleWeights::Create(*read) : read.status();
         if (!weights.ok()) {
           for (const char c : weights.status().message()) {
             EXPECT_TRUE(c >= ' ' && c <= '~') << weights.status();
           }
           return false;
         }
         EXPECT_EQ((*weights)->size(), kSamples);
         for (const double uniform : {0.0, 0.5, std::nextafter(1.0, 0)}) {
           const std::int64_t sample = (*weights)->SampleAt(uniform);
           EXPECT_TRUE(sample >= 0 && sample < kSamples &&
                       (*read)[static_cast<std::size_t>(sample)] > 0);
         }
         return true;
       });
}

}  // namespace
}  // namespace troupe::data

// Damages a good file in 20,000 seeded ways: the reader must return an error,
// or list only data inside the file. Sanitizers check the memory.

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/shard_index.h"
#include "tests/nn/serialize/one_file.h"

namespace troupe::nn {
namespace {

constexpr int kRounds = 20000;
constexpr std::int64_t kBytesMax = 1 << 20;

std::string GoodFile() {
  base::PosixFileSystem files;
  CachingAllocator allocator;
  const std::string path = ::testing::TempDir() + "/good.safetensors";
  const std::vector<NamedTensor> tensors = {
      {"0.weight", Tensor::Zeros({3, 4}, DType::kF32, allocator)},
      {"0.bias", Tensor::Zeros({3}, DType::kF64, allocator)},
      {"steps", Tensor::Zeros({}, DType::kI64, allocator)},
      {"mask", Tensor::Zeros({5}, DType::kU8, allocator)},
  };
  EXPECT_TRUE(WriteSafetensors(files, path, tensors, {{"format", "pt"}}).ok());
  return *base::ReadWholeFile(files, path, kBytesMax);
}

// Pieces from which a header is assembled.
constexpr const char* kPieces[] = {"{",
                                   "}",
                                   "[",
                                   "]",
                                   ",",
                                   ":",
                                   "\"",
                                   "-1",
                                   "1e308",
                                   "18446744073709551615",
                                   "null",
                                   "true",
                                   "\"dtype\"",
                                   "\"F32\"",
                                   "\"shape\"",
                                   "\\u0000",
                                   "\\ud800",
                                   "4294967296",
                                   "[[[[[[",
                                   "\"data_offsets\"",
                                   "\xff",
                                   "0",
                                   "{\"a\":{",
                                   "}}",
                                   "\"__metadata__\":{",
                                   "\"F4\"",
                                   "\"BOOL\"",
                                   "1,1,1,1,1,1,1,1,1,1,1,1,1,1"};

void Damage(RandomStream& draws, std::string& file) {
  const std::size_t at = draws.Below(file.size());
  switch (draws.Below(6)) {
    case 0:
      file[at] = static_cast<char>(draws.Below(256));
      break;
    case 1:
      file[at] = static_cast<char>(file[at] ^ (1 << draws.Below(8)));
      break;
    case 2:
      file.erase(at, 1 + draws.Below(16));
      break;
    case 3:
      file.insert(at, kPieces[draws.Below(std::size(kPieces))]);
      break;
    case 4:
      file.resize(at + 1);
      break;
    default:  // a copy of a piece at another place
      file.insert(draws.Below(file.size()), file.substr(at, draws.Below(32)));
  }
}

void ReadAll(std::string contents) {
  OneFile files(std::move(contents));
  const auto file = SafetensorsFile::Open(files, "fuzzed");
  if (!file.ok()) {
    EXPECT_EQ(file.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(file.status().message().find('\n'), absl::string_view::npos);
    EXPECT_LT(file.status().message().size(), 500u);
    return;
  }
  CachingAllocator allocator;
  for (const SafetensorsEntry& e : file->entries()) {
    EXPECT_EQ(file->Read(e.name, allocator).ok(), e.unreadable.empty());
  }
}

TEST(SafetensorsFuzz, DamagedFilesAreAnsweredInWords) {
  const std::string good = GoodFile();
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    RandomStream draws(RandomKey(/*seed=*/1, Purpose::kTest), {round, 0, 0});
    std::string file = good;
    const std::uint64_t times = 1 + draws.Below(4);
    for (std::uint64_t i = 0; i < times && !file.empty(); ++i) {
      Damage(draws, file);
    }
    ReadAll(std::move(file));
    if (::testing::Test::HasFailure()) return;
  }
}

// Returns TROUPE_FUZZ_ROUNDS, which lets an index be fuzzed for longer.
std::uint32_t RoundsOfIndex() {
  std::uint32_t rounds = 0;
  const char* const text = std::getenv("TROUPE_FUZZ_ROUNDS");
  return text != nullptr && absl::SimpleAtoi(text, &rounds) ? rounds : kRounds;
}

// Returns whether the text is taken for an index.
bool ReadIndex(const std::string& text) {
  const auto index = ParseShardIndex(text);
  const auto names = index.ok() ? FilesOf(*index) : index.status();
  if (!names.ok()) {
    EXPECT_EQ(names.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_LT(names.status().message().size(), 500u);
    for (const char c : names.status().message()) {
      EXPECT_TRUE(c >= ' ' && c <= '~') << names.status();
    }
    return false;
  }
  for (const std::string& name : *names) {
    EXPECT_TRUE(!name.empty() && name.find('/') == std::string::npos) << name;
  }
  return true;
}

TEST(ShardIndexFuzz, DamagedTextsAreAnsweredInWords) {
  const std::string good =
      R"({"metadata": {"total_size": 88, "total_parameters": 22, "shards": 2,
"model_hashes": {"0.weight": "1f"}, "optimizer_hashes": {}},
"weight_map": {"0.weight": "model-00001-of-00002.safetensors",
"0.bias": "model-00002-of-00002.safetensors", "\u0041": "x"}})";
  ASSERT_TRUE(ReadIndex(good));
  std::uint32_t taken = 0;
  const std::uint32_t rounds = RoundsOfIndex();
  for (std::uint32_t round = 0; round < rounds; ++round) {
    RandomStream draws(RandomKey(/*seed=*/2, Purpose::kTest), {round, 0, 0});
    std::string text = good;
    const std::uint64_t times = 1 + draws.Below(4);
    for (std::uint64_t i = 0; i < times && !text.empty(); ++i) {
      Damage(draws, text);
    }
    taken += ReadIndex(text);
    if (::testing::Test::HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_LT(taken, rounds);
  ReadIndex(std::string(1 << 20, '['));
  ReadIndex("{\"weight_map\":" + std::string(1 << 20, '{'));
}

// Deep nesting must not use the stack, nor memory beyond the text.
TEST(SafetensorsFuzz, AMegabyteOfBrackets) {
  const std::uint64_t n = 1 << 20;
  std::string file(reinterpret_cast<const char*>(&n), sizeof(n));
  ReadAll(file + std::string(n, '['));
  ReadAll(file + "{\"a\":" + std::string(n - 5, '{'));
}

}  // namespace
}  // namespace troupe::nn

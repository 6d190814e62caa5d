// Damages files of torch.save, good and hostile ones, and model files of llm.c
// in seeded ways: the readers must return an error of one line, or tensors that
// lie in the file. Sanitizers check the memory. TROUPE_FUZZ_ROUNDS=10000000
// runs longer.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "nn/serialize/torch/pickle.h"
#include "nn/serialize/torch/torch_file.h"
#include "nn/serialize/torch/zip_archive.h"
#include "nn/serialize/weight_sources.h"
#include "nn/tensor/caching_allocator.h"
#include "tests/nn/serialize/llmc_bytes.h"
#include "tests/nn/serialize/one_file.h"

namespace troupe::nn {
namespace {

constexpr std::int64_t kSeedBytesMax = 1 << 20;
// Limit on the elements of a tensor that is read.
constexpr std::int64_t kReadElemsMax = 1 << 16;

constexpr const char* kSeeds[] = {
    "plain.pt",    "legacy.pth",     "deflated.pt", "protocol4.pt",
    "nanogpt.pt",  "lightning.ckpt", "views.pt",    "views_legacy.pt",
    "dtypes.pt",   "timm.pth.tar",   "system0.pt",  "system4.pt",
    "instance.pt", "parameters.pt"};

// Pieces of pickles and archives.
constexpr absl::string_view kPickledPieces[] = {
    "(",
    ")",
    "}",
    "]",
    "t",
    "R",
    "b",
    "Q",
    "u",
    "s",
    "a",
    "e",
    "0",
    "1",
    "2",
    ".",
    "cos\nsystem\n",
    "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
    "\x8a\x09",
    "J\xff\xff\xff\xff",
    "X\xff\xff\xff\x7f",
    "\x8d",
    "\x93",
    "\x94",
    "\x81",
    "\x92",
    "h",
    "q",
    "j\xff\xff\xff\xff",
    "ctorch._utils\n_rebuild_tensor_v2\n",
    "ctorch._utils\n_rebuild_parameter\n",
    "ctorch._tensor\n_rebuild_from_type_v2\n",
    "PK\5\6",
    "PK\6\7",
    "PK\1\2",
    "PK\3\4",
    "\xff\xff\xff\xff"};

std::uint32_t Rounds() {
  std::uint32_t rounds = 0;
  const char* const text = std::getenv("TROUPE_FUZZ_ROUNDS");
  return text != nullptr && absl::SimpleAtoi(text, &rounds) ? rounds : 20000;
}

void DamageArchive(RandomStream& draws, std::string& file) {
  const std::size_t at = draws.Below(file.size());
  switch (draws.Below(7)) {
    case 0:
      file[at] = static_cast<char>(draws.Below(256));
      break;
    case 1:
      file[at] = static_cast<char>(file[at] ^ (1 << draws.Below(8)));
      break;
    case 2:
      file.erase(at, 1 + draws.Below(16));
      break;
    case 3: {
      const absl::string_view piece =
          kPickledPieces[draws.Below(std::size(kPickledPieces))];
      file.insert(at, piece.data(), piece.size());
      break;
    }
    case 4: {
      // The length stays, so that the directory of an archive still fits.
      const absl::string_view piece =
          kPickledPieces[draws.Below(std::size(kPickledPieces))];
      file.replace(at, std::min(piece.size(), file.size() - at), piece.data(),
                   piece.size());
      break;
    }
    case 5:
      file.resize(at + 1);
      break;
    default:
      file.insert(draws.Below(file.size()), file.substr(at, draws.Below(32)));
  }
}

void CheckMessage(const absl::Status& status) {
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  EXPECT_LT(status.message().size(), 2000u);
}

void ReadAll(const TensorSource& file) {
  CachingAllocator allocator;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const StoredTensor& t = file.tensors()[i];
    if (!t.unreadable.empty() || t.shape.numel() > kReadElemsMax) continue;
    const auto into = Tensor::Create(t.shape, t.dtype, allocator);
    ASSERT_TRUE(into.ok());
    const absl::Status read = file.Read(i, *into);
    if (!read.ok()) CheckMessage(read);
  }
}

// The pickle alone, which most damages of an archive do not reach.
std::string PickleIn(const std::string& contents) {
  OneFile files(contents);
  const auto file = files.Open("seed");
  const auto zip = ZipArchive::Open(**file);
  if (!zip.ok()) return contents;
  for (const ZipEntry& entry : zip->entries()) {
    if (entry.name.find("data.pkl") == std::string::npos) continue;
    return *zip->ReadAll(entry, kSeedBytesMax);
  }
  return contents;
}

TEST(TorchFileFuzz, DamagedFilesAreAnsweredInWords) {
  base::PosixFileSystem files;
  std::vector<std::string> seeds, pickles;
  for (const char* name : kSeeds) {
    const auto seed = base::ReadWholeFile(
        files, absl::StrCat("tests/nn/serialize/torch_files/", name),
        kSeedBytesMax);
    ASSERT_TRUE(seed.ok()) << seed.status();
    seeds.push_back(*seed);
    pickles.push_back(PickleIn(*seed));
  }
  const std::uint32_t rounds = Rounds();
  for (std::uint32_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    RandomStream draws(RandomKey(/*seed=*/3, Purpose::kTest), {round, 0, 0});
    const bool alone = draws.Below(2) == 0;
    std::string file = (alone ? pickles : seeds)[draws.Below(seeds.size())];
    const std::uint64_t times = 1 + draws.Below(4);
    for (std::uint64_t i = 0; i < times && !file.empty(); ++i) {
      DamageArchive(draws, file);
    }
    if (alone) {
      const auto tree = ParsePickle(file);
      if (!tree.ok()) CheckMessage(tree.status());
    } else {
      OneFile one(std::move(file));
      const auto opened = OpenTorchFile(one, "fuzzed");
      if (opened.ok()) {
        ReadAll(**opened);
      } else {
        CheckMessage(opened.status());
      }
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// Numbers of a header of llm.c: those of small files, and limits.
constexpr std::int32_t kHeaderNumbers[] = {-2147483647 - 1,
                                           -1,
                                           0,
                                           1,
                                           2,
                                           3,
                                           5,
                                           7,
                                           64,
                                           1024,
                                           10000,
                                           10001,
                                           1 << 20,
                                           1 << 24,
                                           (1 << 24) + 1,
                                           2147483647};
constexpr std::size_t kHeaderFields = 8;
constexpr std::int64_t kLlmcBytesMax = 1 << 16;

// Changes numbers of the header, then the length to the one that it demands, or
// not.
std::string DamagedLlmc(RandomStream& draws) {
  std::int32_t numbers[kHeaderFields];
  LlmcHeader header;
  header.version = draws.Below(2) == 0 ? 3 : 5;
  std::string file = LlmcBytes(header);
  std::memcpy(numbers, &header, sizeof(header));
  const std::uint64_t times = draws.Below(4);
  for (std::uint64_t i = 0; i < times; ++i) {
    numbers[1 + draws.Below(kHeaderFields - 1)] =
        kHeaderNumbers[draws.Below(std::size(kHeaderNumbers))];
  }
  std::memcpy(&header, numbers, sizeof(header));
  std::memcpy(file.data(), numbers, sizeof(numbers));
  const bool small = std::all_of(std::begin(numbers) + 1, std::end(numbers),
                                 [](auto n) { return n >= 0 && n <= 64; });
  if (draws.Below(4) != 0 && small && LlmcSize(header) <= kLlmcBytesMax) {
    file.resize(LlmcSize(header));
  }
  if (draws.Below(4) == 0) DamageArchive(draws, file);
  return file;
}

TEST(LlmcFileFuzz, DamagedFilesAreAnsweredInWords) {
  const std::uint32_t rounds = Rounds();
  std::uint32_t read = 0;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    RandomStream draws(RandomKey(/*seed=*/5, Purpose::kTest), {round, 0, 0});
    OneFile file(DamagedLlmc(draws));
    const auto opened = OpenWeightSources(file, "fuzzed");
    if (opened.ok()) {
      ++read;
      ReadAll(*opened->sources[0]);
    } else {
      CheckMessage(opened.status());
    }
    if (::testing::Test::HasFailure()) return;
  }
  // Both kinds are among them.
  EXPECT_GT(read, rounds / 10);
  EXPECT_LT(read, rounds - rounds / 10);
}

}  // namespace
}  // namespace troupe::nn

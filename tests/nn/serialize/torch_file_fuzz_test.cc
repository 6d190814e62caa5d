// Damages good and hostile files of torch.save in seeded ways: the reader must
// return an error of one line, or tensors that lie in the file. Sanitizers
// check the memory. TROUPE_FUZZ_ROUNDS=10000000 runs longer.

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
#include "nn/serialize/torch/pickle.h"
#include "nn/serialize/torch/torch_file.h"
#include "nn/serialize/torch/zip_archive.h"
#include "nn/tensor/caching_allocator.h"
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
constexpr absl::string_view kPieces[] = {
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

void Damage(RandomStream& draws, std::string& file) {
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
      const absl::string_view piece = kPieces[draws.Below(std::size(kPieces))];
      file.insert(at, piece.data(), piece.size());
      break;
    }
    case 4: {
      // In place, so that the directory of an archive still fits.
      const absl::string_view piece = kPieces[draws.Below(std::size(kPieces))];
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

void ReadAll(std::string contents) {
  OneFile files(std::move(contents));
  const auto file = OpenTorchFile(files, "fuzzed");
  if (!file.ok()) return CheckMessage(file.status());
  CachingAllocator allocator;
  for (std::size_t i = 0; i < (*file)->tensors().size(); ++i) {
    const StoredTensor& t = (*file)->tensors()[i];
    if (!t.unreadable.empty() || t.shape.numel() > kReadElemsMax) continue;
    const auto into = Tensor::Create(t.shape, t.dtype, allocator);
    ASSERT_TRUE(into.ok());
    const absl::Status read = (*file)->Read(i, *into);
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
      Damage(draws, file);
    }
    if (alone) {
      const auto tree = ParsePickle(file);
      if (!tree.ok()) CheckMessage(tree.status());
    } else {
      ReadAll(std::move(file));
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace troupe::nn

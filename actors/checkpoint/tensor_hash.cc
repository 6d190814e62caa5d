#include "actors/checkpoint/tensor_hash.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_format.h"
#include "base/fnv_hash.h"

namespace troupe::actors {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "words are read as they lie in memory");

using Word = std::uint32_t;
constexpr std::int64_t kWordBytes = sizeof(Word);
constexpr std::int64_t kBlockBytes = 1024 * kWordBytes;

// Returns an odd number that looks random (Steele et al. 2014, SplitMix64).
constexpr std::uint64_t OddOf(std::uint64_t n) {
  n = (n + 1) * 0x9e3779b97f4a7c15u;
  n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9u;
  n = (n ^ (n >> 27)) * 0x94d049bb133111ebu;
  return (n ^ (n >> 31)) | 1;
}

// Factors of the words of a block.
constexpr std::array<std::uint64_t, kBlockBytes / kWordBytes> MakeFactors() {
  std::array<std::uint64_t, kBlockBytes / kWordBytes> factors = {};
  for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = OddOf(i);
  return factors;
}
constexpr auto kFactors = MakeFactors();

// Adds up `count` bytes of a block, from byte `at` of it on. A word of which
// they are a part has zeros in place of its other bytes.
std::uint64_t SumInBlock(std::int64_t at, const char* bytes,
                         std::int64_t count) {
  std::uint64_t sum = 0;
  const std::int64_t end = at + count;
  while (at < end) {
    const std::int64_t skipped = at % kWordBytes;
    const std::int64_t taken = std::min(kWordBytes - skipped, end - at);
    Word word = 0;
    std::memcpy(reinterpret_cast<char*>(&word) + skipped, bytes, taken);
    sum += kFactors[at / kWordBytes] * word;
    at += taken, bytes += taken;
    for (; end - at >= kWordBytes; at += kWordBytes, bytes += kWordBytes) {
      std::memcpy(&word, bytes, sizeof(word));
      sum += kFactors[at / kWordBytes] * word;
    }
  }
  return sum;
}

// Returns the sum of `count` bytes of a tensor, from byte `at` of it on.
std::uint64_t SumOfBytes(std::int64_t at, const char* bytes,
                         std::int64_t count) {
  // Factors of blocks begin where those of words cannot be.
  constexpr std::uint64_t kFirstBlock = std::uint64_t{1} << 32;
  std::uint64_t sum = 0;
  while (count > 0) {
    const std::int64_t block = at / kBlockBytes;
    const std::int64_t in_block = at % kBlockBytes;
    const std::int64_t taken = std::min(kBlockBytes - in_block, count);
    sum += OddOf(kFirstBlock + block) * SumInBlock(in_block, bytes, taken);
    at += taken, bytes += taken, count -= taken;
  }
  return sum;
}

}  // namespace

std::uint64_t SumOf(const nn::Tensor& tensor) {
  if (tensor.bytes() == 0) return 0;
  return SumOfBytes(0, static_cast<const char*>(tensor.raw()),
                    static_cast<std::int64_t>(tensor.bytes()));
}

std::uint64_t SumOf(const nn::TensorPart& part) {
  const auto size = static_cast<std::int64_t>(nn::SizeOf(part.dtype));
  std::uint64_t sum = 0;
  for (const nn::TensorRange& range : part.ranges) {
    if (range.count == 0) continue;
    sum += SumOfBytes(
        range.whole * size,
        static_cast<const char*>(part.elements.raw()) + range.part * size,
        range.count * size);
  }
  return sum;
}

std::uint64_t HashOf(const nn::Tensor& tensor) {
  base::FnvHash hash;
  hash.AddBlock(tensor.bytes() == 0 ? nullptr : tensor.raw(), tensor.bytes());
  return hash.value();
}

std::string HashText(std::uint64_t hash) {
  return absl::StrFormat("%016x", hash);
}

}  // namespace troupe::actors

#include "base/xx_hash.h"

#include <cstring>
#include <initializer_list>

namespace troupe::base {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5u;

std::uint64_t RotateLeft(std::uint64_t word, int bits) {
  return (word << bits) | (word >> (64 - bits));
}

template <typename Word>
std::uint64_t Load(const char* from) {
  Word word = 0;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

std::uint64_t Round(std::uint64_t lane, std::uint64_t word) {
  return RotateLeft(lane + word * kPrime2, 31) * kPrime1;
}

std::uint64_t MergeLane(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
}

}  // namespace

std::uint64_t XxHash64(const void* bytes, std::size_t count,
                       std::uint64_t seed) {
  const char* at = static_cast<const char*>(bytes);
  std::size_t left = count;
  std::uint64_t hash = seed + kPrime5;
  if (count >= 32) {
    std::uint64_t a = seed + kPrime1 + kPrime2, b = seed + kPrime2, c = seed,
                  d = seed - kPrime1;
    for (; left >= 32; left -= 32, at += 32) {
      a = Round(a, Load<std::uint64_t>(at));
      b = Round(b, Load<std::uint64_t>(at + 8));
      c = Round(c, Load<std::uint64_t>(at + 16));
      d = Round(d, Load<std::uint64_t>(at + 24));
    }
    hash = RotateLeft(a, 1) + RotateLeft(b, 7) + RotateLeft(c, 12) +
           RotateLeft(d, 18);
    for (const std::uint64_t lane : {a, b, c, d}) hash = MergeLane(hash, lane);
  }
  hash += count;
  for (; left >= 8; left -= 8, at += 8) {
    hash ^= Round(0, Load<std::uint64_t>(at));
    hash = RotateLeft(hash, 27) * kPrime1 + kPrime4;
  }
  for (; left >= 4; left -= 4, at += 4) {
    hash ^= Load<std::uint32_t>(at) * kPrime1;
    hash = RotateLeft(hash, 23) * kPrime2 + kPrime3;
  }
  for (; left > 0; --left, ++at) {
    hash ^= Load<std::uint8_t>(at) * kPrime5;
    hash = RotateLeft(hash, 11) * kPrime1;
  }
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace troupe::base

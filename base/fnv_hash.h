// A hash that is the same on every machine and in every version: FNV-1a, 64
// bits (draft-eastlake-fnv, sec. 2). For comparing runs, not for tables.
//
//   FnvHash hash;
//   hash.Add(17);                     // a word at once
//   hash.AddBytes("parameters", 10);  // byte by byte
//   hash.AddBlock(data, data_bytes);  // in words of 8 bytes: GB a second
//   const std::uint64_t value = hash.value();
//
// Threads: one at a time.

#ifndef BASE_FNV_HASH_H_
#define BASE_FNV_HASH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace troupe::base {

class FnvHash {
 public:
  void Add(std::uint64_t word) { value_ = (value_ ^ word) * 1099511628211u; }
  void AddBytes(const void* bytes, std::size_t count) {
    const auto* byte = static_cast<const unsigned char*>(bytes);
    for (std::size_t i = 0; i < count; ++i) Add(byte[i]);
  }
  // Adds the number of bytes, then the bytes as little-endian words, the last
  // of them padded with zeros. Another value of any word gives another hash.
  void AddBlock(const void* bytes, std::size_t count) {
    Add(count);
    const auto* from = static_cast<const char*>(bytes);
    for (std::size_t at = 0; at < count; at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + at, std::min(sizeof(word), count - at));
      Add(word);
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

}  // namespace troupe::base

#endif  // BASE_FNV_HASH_H_

// Hashes by which a resumed run notices that its data are others than before,
// as texts for data::DescribeData(). They depend on contents alone: files may
// move.
//
//   ContentHash hash;
//   hash.Add(text);                       // bytes; a std::vector of numbers
//   hash.Add(label);
//   splits.content = hash.ToString();     // "91b2c0de17a4f305"
//
// Threads: one at a time.

#ifndef DATA_CONTENT_HASH_H_
#define DATA_CONTENT_HASH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/fnv_hash.h"

namespace troupe::data {

class ContentHash {
 public:
  void Add(absl::string_view bytes) {
    hash_.AddBlock(bytes.data(), bytes.size());
  }
  template <typename T>
  void Add(const std::vector<T>& numbers) {
    hash_.AddBlock(numbers.data(), numbers.size() * sizeof(T));
  }
  void Add(std::int64_t number) {
    hash_.Add(static_cast<std::uint64_t>(number));
  }
  std::string ToString() const {
    return absl::StrFormat("%016x", hash_.value());
  }

 private:
  base::FnvHash hash_;
};

}  // namespace troupe::data

#endif  // DATA_CONTENT_HASH_H_

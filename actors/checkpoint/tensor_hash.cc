#include "actors/checkpoint/tensor_hash.h"

#include "absl/strings/str_format.h"
#include "base/fnv_hash.h"

namespace troupe::actors {

std::uint64_t HashOf(const nn::Tensor& tensor) {
  base::FnvHash hash;
  hash.AddBlock(tensor.bytes() == 0 ? nullptr : tensor.raw(), tensor.bytes());
  return hash.value();
}

std::string HashText(std::uint64_t hash) {
  return absl::StrFormat("%016x", hash);
}

}  // namespace troupe::actors

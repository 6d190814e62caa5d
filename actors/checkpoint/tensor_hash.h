// A hash of a tensor's bytes, by which a reader notices values that have
// changed on the disk. Not cryptographic: it finds accidents, not intent.
//
//   const std::uint64_t written = HashOf(tensor);
//   HashText(written);                      // "00f3a9c2d4e5b617"
//
// The tensor is in host memory. Cost: some gigabytes a second.

#ifndef ACTORS_CHECKPOINT_TENSOR_HASH_H_
#define ACTORS_CHECKPOINT_TENSOR_HASH_H_

#include <cstdint>
#include <string>

#include "nn/tensor/tensor.h"

namespace troupe::actors {

std::uint64_t HashOf(const nn::Tensor& tensor);
std::string HashText(std::uint64_t hash);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_TENSOR_HASH_H_

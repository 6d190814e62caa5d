// A checksum of a tensor's bytes, by which a reader notices values that have
// changed on the disk. Not cryptographic: it finds accidents, not intent.
//
//   const std::uint64_t written = SumOf(tensor);
//   HashText(written);                      // "00f3a9c2d4e5b617"
//   SumOf(first_half) + SumOf(second_half);   // the same
//
// Ranks that have parts of a tensor add up the sums of their parts: a sum does
// not depend on which rank had which elements. It is linear in the words of 4
// bytes (multilinear hashing: Carter and Wegman 1979), each of which has an odd
// factor of 64 bits by its place: any other value of one word changes the sum,
// and of several words with a probability of about 1 - 2^-32.
//
// The tensor is in host memory. Cost: some gigabytes a second.

#ifndef ACTORS_CHECKPOINT_TENSOR_HASH_H_
#define ACTORS_CHECKPOINT_TENSOR_HASH_H_

#include <cstdint>
#include <string>

#include "nn/serialize/tensor_parts.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

std::uint64_t SumOf(const nn::Tensor& tensor);
// Returns the sum of the elements in the ranges of the part.
std::uint64_t SumOf(const nn::TensorPart& part);

// Returns the hash that checkpoints of earlier versions have.
std::uint64_t HashOf(const nn::Tensor& tensor);
std::string HashText(std::uint64_t hash);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_TENSOR_HASH_H_

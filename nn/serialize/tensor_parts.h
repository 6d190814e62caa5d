// A safetensors file that several writers fill in place, each with the elements
// that it has, so that none of them needs the whole tensors in its memory.
//
//   // Each of two writers has every other row of a tensor of four rows.
//   TensorPart part;
//   part.name = "fc.weight", part.dtype = DType::kF32, part.shape = {4, 10};
//   part.elements = mine;                              // f32[20]
//   part.ranges = {{0, 0, 10}, {20, 10, 10}};          // rows 0 and 2
//   absl::StatusOr<PartsWritten> written =
//       WriteTensorParts(files, "model.safetensors", {part},
//                        {{"format", "pt"}}, /*is_first=*/true);
//
// All writers pass the same tensors, by name, dtype and shape, also those of
// which they have no element. From these each writer computes the same header
// and places, so that no writer waits for another, in any order, in threads or
// processes. The first one writes the header. Once all have returned, the file
// is byte for byte that of WriteSafetensors() with the whole tensors.
//
// No writer sees what the others write: the caller compares PartsWritten.
//
// Cost: a system call for each range. Threads: each writer has one.

#ifndef NN_SERIALIZE_TENSOR_PARTS_H_
#define NN_SERIALIZE_TENSOR_PARTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "nn/serialize/safetensors.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

// `count` elements that follow each other both in the whole tensor, from
// `whole` on, and in the memory of the part, from `part` on.
struct TensorRange {
  std::int64_t whole = 0;
  std::int64_t part = 0;
  std::int64_t count = 0;
};

// The elements of one tensor that a writer has.
struct TensorPart {
  TensorPart() = default;
  // All elements of the tensor.
  TensorPart(std::string name, Tensor tensor)
      : name(std::move(name)),
        dtype(tensor.dtype()),
        shape(tensor.shape()),
        elements(std::move(tensor)),
        ranges({{0, 0, shape.numel()}}) {}

  // Leaves the elements to another writer.
  void Drop() {
    elements = Tensor();
    ranges.clear();
  }

  std::string name;
  DType dtype = DType::kF32;
  Shape shape;      // shape of the whole tensor
  Tensor elements;  // host memory; undefined if there are no ranges
  std::vector<TensorRange> ranges;
};

struct PartsWritten {
  std::uint64_t layout = 0;     // hash of the header: equal for all writers
  std::int64_t data_bytes = 0;  // size of all tensors
  std::int64_t bytes = 0;       // size of the ranges that this writer wrote
};

// Writes the ranges of `parts`, and the header if `is_first`, into the file
// `path`, which it makes if no other writer has; syncs and closes it.
//   kInvalidArgument: a name as WriteSafetensors() refuses it, or a range
//     outside of its tensor or part. Nothing was written.
//   other: from the file system; the file is incomplete.
absl::StatusOr<PartsWritten> WriteTensorParts(
    base::FileSystem& files, const std::string& path,
    absl::Span<const TensorPart> parts, const SafetensorsMetadata& metadata,
    bool is_first);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_TENSOR_PARTS_H_

// A dataset of two tensors, all inputs and all targets, like torch's
// TensorDataset.
//
//   const nn::Tensor& x = inputs;              // [N, 10] f32
//   const nn::Tensor& y = targets;             // [N] i64
//   TROUPE_ASSIGN_OR_RETURN(DatasetPtr d,
//                           MakeInMemoryDataset(x, y, /*num_classes=*/2));
//
// It shares the tensors' memory, which must not change afterwards. Any dtype
// and sample shape. Cost of a gather: one copy per row.

#ifndef DATA_IN_MEMORY_DATASET_H_
#define DATA_IN_MEMORY_DATASET_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace troupe::data {

// `inputs` [N, ...] and `targets` [N, ...] in host memory. With num_classes > 0
// the targets are i64 class numbers below it; with 0 they are values.
//   kInvalidArgument: the numbers of rows differ, a target is not a class, a
//                     tensor has no rows axis or no memory.
absl::StatusOr<DatasetPtr> MakeInMemoryDataset(nn::Tensor inputs,
                                               nn::Tensor targets,
                                               std::int64_t num_classes);

}  // namespace troupe::data

#endif  // DATA_IN_MEMORY_DATASET_H_

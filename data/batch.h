// One micro-batch, as a loader hands it to a rank.
//
//   const Batch& batch = batches[m];
//   batch.inputs.shape();        // [B, H, W, C] or [B, D]
//   batch.targets.shape();       // [B] class numbers i64, or [B, D] f32
//   batch.size();                // B; may be 0 in the last step of an epoch

#ifndef DATA_BATCH_H_
#define DATA_BATCH_H_

#include <cstdint>

#include "nn/tensor/tensor.h"

namespace troupe::data {

struct Batch {
  nn::Tensor inputs;
  nn::Tensor targets;
  std::int64_t epoch = 0;
  // Number of the first sample in the global batch: the counter by which
  // random layers draw, whichever rank holds the sample.
  std::int64_t position = 0;
  // Samples of the step over all ranks: what the mean loss divides by when
  // every sample counts once.
  std::int64_t global_batch_size = 0;

  std::int64_t size() const { return inputs.dim(0); }
};

}  // namespace troupe::data

#endif  // DATA_BATCH_H_

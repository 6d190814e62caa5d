// One micro-batch of a rank, filled by a loader.
//
//   const Batch& batch = batches[m];
//   batch.inputs.shape();        // [B, H, W, C] or [B, D]
//   batch.targets.shape();       // [B] class numbers i64, or [B, D] f32
//   batch.size();                // B; may be 0 in the last step of an epoch

#ifndef DATA_BATCH_H_
#define DATA_BATCH_H_

#include <cstdint>

#include "nn/tensor/tensor.h"
#include "nn/tensor/text_places.h"

namespace troupe::data {

struct Batch {
  nn::Tensor inputs;
  nn::Tensor targets;
  std::int64_t epoch = 0;
  // Index of the first sample in the global batch. Random layers draw by this
  // counter, so their draws do not depend on the rank that holds the sample.
  std::int64_t position = 0;
  // Number of samples of the step over all ranks. The mean loss divides by it
  // if every sample counts once.
  std::int64_t global_batch_size = 0;
  // Texts that the samples go on with, in generation; every rank has them.
  nn::TextPlaces texts = {};

  std::int64_t size() const { return inputs.dim(0); }
};

}  // namespace troupe::data

#endif  // DATA_BATCH_H_

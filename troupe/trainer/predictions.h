// Outputs of a model for the samples of a data set, as Trainer::Predict()
// returns them and callbacks see them.
//
//   absl::StatusOr<Predictions> predicted = trainer.Predict(task, {test, 32});
//   for (const PredictedBatch& batch : predicted->batches) {
//     batch.output;                     // row i is that of batch.samples[i]
//   }
//   std::vector<Tensor> own = predicted->OfReplica(0);  // Lightning's list
//   absl::StatusOr<Tensor> all = predicted->InOrder();  // row i: sample i
//
// Tensors are in memory of the host.

#ifndef TROUPE_TRAINER_PREDICTIONS_H_
#define TROUPE_TRAINER_PREDICTIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/tensor/tensor.h"

namespace troupe {

// The outputs of a batch of one replica.
struct PredictedBatch {
  int replica = 0;  // number of the rank, if each rank has the whole model
  std::int64_t batch_idx = 0;         // number of the replica's batch, from 0
  std::vector<std::int64_t> samples;  // number in the data set of each sample
  nn::Tensor output;                  // [samples, ...], in the model's dtype
};

struct Predictions {
  // Returns the outputs of the replica's batches, in their order: the list that
  // Lightning's predict() returns on that rank.
  std::vector<nn::Tensor> OfReplica(int replica) const;
  // Returns the outputs of all samples as one tensor [N, ...], in the order of
  // the data set.
  //   kFailedPrecondition: there are none, or some are missing: those of other
  //     processes.
  //   kInvalidArgument: the outputs have no row for each sample, or rows of
  //     different shapes or dtypes.
  absl::StatusOr<nn::Tensor> InOrder() const;

  // Batches of the replicas in this process, by number, then by replica.
  std::vector<PredictedBatch> batches;
};

}  // namespace troupe

#endif  // TROUPE_TRAINER_PREDICTIONS_H_

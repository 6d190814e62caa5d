// Runs the optimizer within a collective, on a bucket's summed gradients (RU
// actions).
//
//   auto update = std::make_shared<BucketUpdate>(kernels, optimizer, arena,
//                                                /*bucket=*/0, scalars);
//   comm->RunInline(comm::ReduceUpdate(op, arena->BucketGrads(0), update),
//                   timeout);
//
// It updates the bucket's values and the arena's states, so the optimizer must
// be elementwise (nn/optim/optimizer.h) and have no other state. It shares
// ownership of all that it uses, since a collective may outlive the step engine
// of its rank.
//
// Threads: Apply() in the thread that drives the rank's collectives, one at a
// time; the replicas are also written by the threads that drive the peers.

#ifndef ACTORS_CHUNKS_BUCKET_UPDATE_H_
#define ACTORS_CHUNKS_BUCKET_UPDATE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comm/replica_update.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/kernels.h"
#include "nn/optim/optimizer.h"

namespace troupe::actors {

class BucketUpdate : public comm::ReplicaUpdate {
 public:
  // The arena has all its states. `scalars` has the values of the present step,
  // in memory that the host may read.
  BucketUpdate(std::shared_ptr<nn::Kernels> kernels,
               std::shared_ptr<nn::Optimizer> optimizer,
               std::shared_ptr<nn::ParameterArena> arena, int bucket,
               nn::Tensor scalars)
      : kernels_(std::move(kernels)),
        optimizer_(std::move(optimizer)),
        arena_(std::move(arena)),
        scalars_(std::move(scalars)),
        begin_(arena_->range(bucket).begin) {
    replicas_.push_back(arena_->BucketValues(bucket));
    for (const auto& [name, state] : arena_->states()) {
      replicas_.push_back(arena_->View(state, bucket));
    }
  }

  absl::Span<const nn::Tensor> replicas() const override { return replicas_; }
  absl::Status Apply(std::int64_t begin, const nn::Tensor& sum) override {
    const nn::ArenaRange range = {begin_ + begin, begin_ + begin + sum.numel()};
    return optimizer_->UpdateRange(*kernels_, scalars_, *arena_, range, sum);
  }

 private:
  const std::shared_ptr<nn::Kernels> kernels_;
  const std::shared_ptr<nn::Optimizer> optimizer_;
  const std::shared_ptr<nn::ParameterArena> arena_;
  const nn::Tensor scalars_;
  const std::int64_t begin_;
  std::vector<nn::Tensor> replicas_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_BUCKET_UPDATE_H_

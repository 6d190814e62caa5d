// The optimizer as what a collective does with a bucket's sum (RU actions).
//
//   BucketUpdate update(kernels, optimizer, arena, /*bucket=*/0);
//   update.set_scalars(scalars);            // before each step's collective
//   comm.RunInline(comm::ReduceUpdate(op, arena.BucketGrads(0), &update), ...);
//
// Threads: of the rank's compute strand, which also drives the collective.

#ifndef ACTORS_BUCKET_UPDATE_H_
#define ACTORS_BUCKET_UPDATE_H_

#include <vector>

#include "comm/replica_update.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/kernels.h"
#include "nn/optim/optimizer.h"

namespace troupe::actors {

class BucketUpdate : public comm::ReplicaUpdate {
 public:
  // The arena has all its states. `optimizer` is elementwise.
  BucketUpdate(nn::Kernels& kernels, nn::Optimizer& optimizer,
               nn::ParameterArena& arena, int bucket)
      : kernels_(kernels),
        optimizer_(optimizer),
        arena_(arena),
        begin_(arena.range(bucket).begin) {
    replicas_.push_back(arena.BucketValues(bucket));
    for (const auto& [name, state] : arena.states()) {
      replicas_.push_back(arena.View(state, bucket));
    }
  }

  void set_scalars(const nn::StepScalars& scalars) { scalars_ = scalars; }

  absl::Span<const nn::Tensor> replicas() const override { return replicas_; }
  absl::Status Apply(std::int64_t begin, const nn::Tensor& sum) override {
    const nn::ArenaRange range = {begin_ + begin, begin_ + begin + sum.numel()};
    return optimizer_.UpdateRange(kernels_, scalars_, arena_, range, sum);
  }

 private:
  nn::Kernels& kernels_;
  nn::Optimizer& optimizer_;
  nn::ParameterArena& arena_;
  const std::int64_t begin_;
  std::vector<nn::Tensor> replicas_;
  nn::StepScalars scalars_;
};

}  // namespace troupe::actors

#endif  // ACTORS_BUCKET_UPDATE_H_

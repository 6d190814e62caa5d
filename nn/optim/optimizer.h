// An optimizer updates ranges of a rank's arena, bucket by bucket, as soon as
// each is reduced.
//
//   Sgd sgd({/*lr=*/0.1, /*momentum=*/0.9});
//   sgd.Attach(arena);
//   StepScalars scalars{/*step=*/0, /*divisor=*/64.0};
//   for (int k = 0; k < arena.num_buckets(); ++k) {
//     sgd.Update(kernels, scalars, arena, k);
//   }

#ifndef NN_OPTIM_OPTIMIZER_H_
#define NN_OPTIM_OPTIMIZER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/kernels.h"

namespace troupe::nn {

// What changes from step to step, in one place, read when the update runs.
struct StepScalars {
  std::int64_t step = 0;  // committed steps before this one
  double divisor = 1;     // counted targets of the global batch
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Adds the state arenas that the optimizer needs.
  virtual void Attach(ParameterArena& arena) = 0;

  // Updates bucket `bucket` from its reduced gradients.
  virtual absl::Status Update(Kernels& kernels, const StepScalars& scalars,
                              ParameterArena& arena, int bucket) = 0;

  // True where an update must wait until all buckets are reduced (a global
  // norm, a finite check).
  virtual bool NeedsAllBuckets() const { return false; }
};

}  // namespace troupe::nn

#endif  // NN_OPTIM_OPTIMIZER_H_

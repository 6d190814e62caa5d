// Reads the losses of steps back from a device with queues, without blocking
// the host: the copies are enqueued, and Take() returns a loss once they are
// complete.
//
//   LossReader reader(kernels);
//   reader.Check(/*micro_batch=*/0, stats);
//   reader.EndStep(step, nn::Queue::kCompute, scalars, checks);
//   // Later, when the copies may be complete:
//   TROUPE_ASSIGN_OR_RETURN(std::optional<LossBits> bits, reader.Take());
//
// Nothing overwrites a tensor while it is copied: a step has its own tensors
// for statistics, and its scalars, which the next step overwrites, are copied
// on the device first.
//
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_STEP_LOSS_READER_H_
#define ACTORS_CHUNKS_STEP_LOSS_READER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/step/loss_check.h"
#include "actors/chunks/step/step_types.h"
#include "base/event.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class LossReader {
 public:
  // `kernels` has queues, and outlives it.
  explicit LossReader(nn::Kernels& kernels) : kernels_(kernels) {}

  // Makes Take() check these statistics of the step's loss.
  void Check(int micro_batch, const nn::Tensor& stats) {
    kept_.emplace_back(micro_batch, stats);
  }
  // Removes and returns the arguments of Check() since the last EndStep(): they
  // are not checked then.
  std::vector<std::pair<int, nn::Tensor>> TakeChecked() {
    return std::exchange(kept_, {});
  }
  // Makes kCompute wait until the copies of the last EndStep() are complete.
  void AwaitCopied();
  // Enqueues the copies. `scalars` is written in the order of `queue`, whose
  // work so far follows all statistics. Take() makes `checks`.
  //   kResourceExhausted: there is no memory for the copies.
  absl::Status EndStep(std::int64_t step, nn::Queue queue,
                       const nn::Tensor& scalars, const StepChecks& checks);
  // Implements StepLoss::Take().
  absl::StatusOr<std::optional<LossBits>> Take();

 private:
  // A tensor of the device that is being copied to the host.
  struct Copy {
    nn::Tensor device, host;
  };
  struct Step {
    std::int64_t step;
    StepChecks checks;
    Copy scalars;
    std::vector<std::pair<int, Copy>> stats;  // first: micro-batch
    base::Event copied;
  };

  // Returns a copy of `scalars`, made by `queue` in memory of its order.
  absl::StatusOr<nn::Tensor> CopyIn(nn::Queue queue, const nn::Tensor& scalars);
  absl::StatusOr<Copy> ToHost(const nn::Tensor& device);

  nn::Kernels& kernels_;
  std::vector<std::pair<int, nn::Tensor>> kept_;
  std::deque<Step> steps_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_STEP_LOSS_READER_H_

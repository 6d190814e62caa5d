// Brings the losses of steps to the host, where the device works later than it
// is told: the host goes on, and learns of a loss when it is there.
//
//   LossReader reader(kernels);
//   reader.Check(/*micro_batch=*/0, stats);
//   reader.EndStep(step, nn::Queue::kCompute, scalars, checks);
//   // Later, when the device has come on:
//   TROUPE_ASSIGN_OR_RETURN(std::optional<LossBits> bits, reader.Take());
//
// What is copied lies still until it is: a step's statistics are its own
// tensors, and its scalars, which the next step overwrites, are copied on the
// device first.
//
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_LOSS_READER_H_
#define ACTORS_CHUNKS_LOSS_READER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/loss_check.h"
#include "actors/chunks/step_types.h"
#include "base/event.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class LossReader {
 public:
  // `kernels` has queues, and outlives it.
  explicit LossReader(nn::Kernels& kernels) : kernels_(kernels) {}

  // Take() is to look at these statistics of the step's loss.
  void Check(int micro_batch, const nn::Tensor& stats) {
    kept_.emplace_back(micro_batch, stats);
  }
  // What Check() was given since the step before; not looked at then.
  std::vector<std::pair<int, nn::Tensor>> TakeChecked() {
    return std::exchange(kept_, {});
  }
  // kCompute waits until what EndStep() copies was copied.
  void AwaitCopied();
  // `scalars` are in the order of `queue`, and what it has been given so far
  // comes after all statistics. Take() makes the checks.
  //   kResourceExhausted: there is no memory for the copies.
  absl::Status EndStep(std::int64_t step, nn::Queue queue,
                       const nn::Tensor& scalars, const StepChecks& checks);
  // As StepLoss::Take().
  absl::StatusOr<std::optional<LossBits>> Take();

 private:
  // A tensor of the device on its way to the host.
  struct Copy {
    nn::Tensor device, host;
  };
  struct Step {
    std::int64_t step;
    StepChecks checks;
    Copy scalars;
    std::vector<std::pair<int, Copy>> stats;  // by micro-batch
    base::Event copied;
  };

  // A copy of `scalars` that `queue` makes, in its memory.
  absl::StatusOr<nn::Tensor> CopyIn(nn::Queue queue, const nn::Tensor& scalars);
  absl::StatusOr<Copy> ToHost(const nn::Tensor& device);

  nn::Kernels& kernels_;
  std::vector<std::pair<int, nn::Tensor>> kept_;
  std::deque<Step> steps_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_LOSS_READER_H_

// Queue of the outputs of predictions, in host memory.
//
//   TROUPE_RETURN_IF_ERROR(outputs.Keep(kernels, chunk.output(0)));
//   nn::Tensor output = outputs.Take();        // after the step's loss
//
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_PREDICTED_OUTPUTS_H_
#define ACTORS_ENGINE_PREDICTED_OUTPUTS_H_

#include <deque>

#include "absl/status/status.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class PredictedOutputs {
 public:
  // Appends `output`. On a device with queues, enqueues a copy to host memory.
  //   kResourceExhausted: there is no memory for the copy.
  absl::Status Keep(nn::Kernels& kernels, const nn::Tensor& output);
  // Removes and returns the oldest output. Call it once StepLoss::Take() has
  // returned the loss of its step: the copy is then complete.
  nn::Tensor Take();

 private:
  std::deque<nn::Tensor> outputs_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_PREDICTED_OUTPUTS_H_

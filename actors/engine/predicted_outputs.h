// What predictions gave, in memory of the host, until it is taken.
//
//   TROUPE_RETURN_IF_ERROR(outputs.Keep(kernels, chunk.output(0)));
//   nn::Tensor output = outputs.Take();        // behind the step's loss
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
  // Copies it where the kernels' tensors are not the host's.
  //   kResourceExhausted: there is no memory for the copy.
  absl::Status Keep(nn::Kernels& kernels, const nn::Tensor& output);
  // The first that was kept and not taken.
  nn::Tensor Take();

 private:
  std::deque<nn::Tensor> outputs_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_PREDICTED_OUTPUTS_H_

#include "actors/engine/predicted_outputs.h"

#include <utility>

#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

absl::Status PredictedOutputs::Keep(nn::Kernels& kernels,
                                    const nn::Tensor& output) {
  if (kernels.queues() == nullptr) {
    outputs_.push_back(output);
    return absl::OkStatus();
  }
  // The same queue reads the step's losses after this copy, so the copy is
  // complete when the losses are.
  nn::Wait(kernels, nn::Queue::kReadBack,
           nn::Record(kernels, nn::Queue::kCompute));
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor host, nn::CopyToHost(kernels, nn::Queue::kReadBack, output));
  nn::Record(kernels, nn::Queue::kReadBack)
      .OnReady([kept = output](const absl::Status&) {});
  outputs_.push_back(std::move(host));
  return absl::OkStatus();
}

nn::Tensor PredictedOutputs::Take() {
  TROUPE_CHECK(!outputs_.empty(), "a prediction that has ended has an output");
  nn::Tensor output = std::move(outputs_.front());
  outputs_.pop_front();
  return output;
}

}  // namespace troupe::actors

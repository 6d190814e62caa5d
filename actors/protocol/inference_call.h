// One request to a trained model, and the future of its answer.
//
//   auto call = std::make_shared<InferenceCall>(inputs);
//   caf::anon_send(model, call);                // an InferenceActor
//   absl::StatusOr<InferenceAnswer> answer = call->Wait();
//   answer->outputs[0];                         // of inputs[0]
//
// Threads: any; Wait() must not be called by an actor.

#ifndef ACTORS_PROTOCOL_INFERENCE_CALL_H_
#define ACTORS_PROTOCOL_INFERENCE_CALL_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "nn/tensor/tensor.h"
#include "nn/tensor/text_places.h"

namespace troupe::actors {

struct InferenceAnswer {
  std::vector<nn::Tensor> outputs;  // one for each input, in their order
  // Peak number of bytes that each rank's tensors have held so far; by rank.
  std::vector<std::uint64_t> peak_bytes;
};

class InferenceCall {
 public:
  // `texts`: those that the samples of the inputs go on with, if the model
  // keeps what it has seen (nn/autograd/kv_cache.h).
  explicit InferenceCall(std::vector<nn::Tensor> inputs,
                         nn::TextPlaces texts = {})
      : inputs_(std::move(inputs)), texts_(std::move(texts)) {}

  const std::vector<nn::Tensor>& inputs() const { return inputs_; }
  const nn::TextPlaces& texts() const { return texts_; }
  // Sets the answer; called once.
  void Set(absl::StatusOr<InferenceAnswer> answer) {
    answer_ = std::move(answer);
    done_.Notify();
  }
  bool HasBeenSet() const { return done_.HasBeenNotified(); }
  const absl::StatusOr<InferenceAnswer>& Wait() const {
    done_.WaitForNotification();
    return answer_;
  }

 private:
  const std::vector<nn::Tensor> inputs_;
  const nn::TextPlaces texts_;
  absl::StatusOr<InferenceAnswer> answer_ = absl::UnknownError("not answered");
  absl::Notification done_;
};

}  // namespace troupe::actors

#endif  // ACTORS_PROTOCOL_INFERENCE_CALL_H_

// The actor of a trained model, whose stages are on the compute strands of a
// pipeline's ranks: inputs enter at the first stage, and outputs leave the last
// one. The strands run the tables of an evaluation, and return outputs in place
// of losses.
//
// Takes  InferenceCallPtr             from inference_session.h
//        StepsDone                    from its compute strands
//        Failure                      of one of them
// Gives  RunSteps to the strands, one input a step, all ranks the same steps;
//        an answer to each call, in the order of calls
// Fails  never: an error in a strand ends all strands, and is the answer to the
//        present call and to every later one. So is a silence that is longer
//        than JobSpec::timeout
//
// The credits of an evaluation keep adjacent stages within one step of each
// other: inputs of one call overlap, and a fast stage does not run ahead.

#ifndef ACTORS_INFERENCE_INFERENCE_ACTOR_H_
#define ACTORS_INFERENCE_INFERENCE_ACTOR_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/protocol/inference_call.h"
#include "actors/protocol/messages.h"
#include "actors/setup/process_context.h"
#include "actors/setup/test_hooks.h"
#include "nn/modules/module.h"

namespace troupe::actors {

// Makes the contexts for the strands of a trained model: one replica of the
// stages of `spec.plan`, without parameters to train. `hooks` may be null, and
// outlives the model. `runs`: the argument of InferenceSession::Open().
//   kInvalidArgument: the stages do not fit the model, or the checkpoint is of
//     another one; names the difference.
absl::StatusOr<ProcessContextPtr> SetUpInference(
    const JobSpec& spec, const Checkpoint& checkpoint,
    const TestHooks* hooks = nullptr, const nn::ModelFactory& runs = nullptr);

class InferenceState {
 public:
  static inline const char* name = "inference";
  using Self = InferenceActor::stateful_pointer<InferenceState>;

  ~InferenceState();
  // Spawns the strands, each of which reads its part of the checkpoint.
  void Init(Self self, ProcessContextPtr process,
            const std::shared_ptr<const Checkpoint>& checkpoint);

  void OnCall(InferenceCallPtr call);
  void OnStepsDone(StepsDone& done);
  void OnWatch();
  void OnDown(const caf::down_msg& down);
  // Ends the strands. `status` answers all calls, now and later; a second call
  // of End() does nothing.
  void End(const absl::Status& status);

 private:
  struct Pending {
    InferenceCallPtr call;
    std::vector<nn::Tensor> outputs;
  };

  void Feed(const nn::Tensor& input, const nn::TextPlaces& texts);
  void Watch(std::chrono::nanoseconds delay);
  // Returns the rank of a compute strand; -1 for any other actor.
  int RankOf(const caf::actor_addr& actor) const;
  std::string WhereRanksStand() const;

  Self self_ = nullptr;
  ProcessContextPtr process_;
  std::vector<ComputeActor> computes_;  // compute strands, by rank
  std::vector<std::int64_t> done_;      // number of steps done, by rank
  std::vector<std::uint64_t> peak_bytes_;
  std::int64_t steps_ = 0;  // number of steps sent to the strands
  std::deque<Pending> calls_;
  std::chrono::steady_clock::time_point last_sign_;  // last sign of life
  bool watching_ = false;
  absl::Status failure_;
};

InferenceActor::behavior_type InferenceBehavior(
    InferenceState::Self self, ProcessContextPtr process,
    std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace troupe::actors

#endif  // ACTORS_INFERENCE_INFERENCE_ACTOR_H_

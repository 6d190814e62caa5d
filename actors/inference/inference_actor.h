// A trained model, spread over the compute strands of a pipeline's ranks: what
// it is asked goes in at the first stage, and what it says comes out of the
// last one. The strands run the tables of an evaluation, and give outputs in
// place of losses.
//
// Takes  InferenceCallPtr             from who asks (inference_session.h)
//        StepsDone                    from its compute strands
//        Failure                      of one of them
// Gives  RunSteps to the strands, an input a step, all ranks the same steps;
//        an answer to each call, in their order
// Fails  never: what fails in a strand ends all of them, and is the answer to
//        this call and to every later one. So is a silence that is longer than
//        JobSpec::timeout
//
// Stages hold each other to a step's distance by the credits of an evaluation,
// so inputs of one call overlap, and a fast stage does not run away.

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

namespace troupe::actors {

// What the strands of a trained model work with: one replica of the stages of
// `spec.plan`, nothing to train. `hooks` may be null, and outlives the model.
//   kInvalidArgument: the stages do not fit the model, or the checkpoint is of
//     another one; names what.
absl::StatusOr<ProcessContextPtr> SetUpInference(
    const JobSpec& spec, const Checkpoint& checkpoint,
    const TestHooks* hooks = nullptr);

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
  // Ends the strands: all calls are answered by the first such status.
  void End(const absl::Status& status);

 private:
  struct Pending {
    InferenceCallPtr call;
    std::vector<nn::Tensor> outputs;
  };

  void Feed(const nn::Tensor& input);
  void Watch(std::chrono::nanoseconds delay);
  // The rank whose strand `actor` is; -1: it is none's.
  int RankOf(const caf::actor_addr& actor) const;
  std::string WhereRanksStand() const;

  Self self_ = nullptr;
  ProcessContextPtr process_;
  std::vector<ComputeActor> computes_;  // by rank
  std::vector<std::int64_t> done_;      // steps, by rank
  std::vector<std::uint64_t> peak_bytes_;
  std::int64_t steps_ = 0;  // that the strands were given
  std::deque<Pending> calls_;
  std::chrono::steady_clock::time_point last_sign_;  // of life
  bool watching_ = false;
  absl::Status failure_;
};

InferenceActor::behavior_type InferenceBehavior(
    InferenceState::Self self, ProcessContextPtr process,
    std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace troupe::actors

#endif  // ACTORS_INFERENCE_INFERENCE_ACTOR_H_

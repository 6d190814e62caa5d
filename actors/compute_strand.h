// The compute strand of one rank: kernels, tapes and updates run here, through
// the StepRunner, and nowhere else.
//
// Takes  ComputePeers                      first of all
//        RunSteps {kind, first, batches}   from its rank
//        Launched {step, action, status}   from its communication strand
//        Transfer                          from a neighbouring stage
//        resume                            from itself: go on after a yield
//        (snapshot, step)                  -> SnapshotPtr
// Gives  StepsDone to its rank; Launch to its communication strand;
//        Transfer to its neighbours
// Fails  with the runner's status, as a Failure

#ifndef ACTORS_COMPUTE_STRAND_H_
#define ACTORS_COMPUTE_STRAND_H_

#include <deque>
#include <memory>
#include <vector>

#include "actors/messages.h"
#include "actors/rank_context.h"
#include "actors/step_runner.h"

namespace troupe::actors {

class ComputeState : public StepRunner::Host {
 public:
  static inline const char* name = "compute";
  using Self = ComputeActor::stateful_pointer<ComputeState>;

  ~ComputeState() override = default;

  absl::Status Init(Self self, RankContextPtr context);
  void Wire(ComputePeersPtr peers) { peers_ = std::move(peers); }

  absl::Status Enqueue(const RunSteps& steps);
  absl::Status OnLaunched(const Launched& launched);
  absl::Status OnTransfer(const Transfer& transfer);
  absl::Status OnResume();
  SnapshotPtr MakeSnapshot(std::int64_t step) {
    return runner_->MakeSnapshot(step);
  }

 private:
  // Runs until the mailbox must be looked into, or there is nothing to do.
  absl::Status Go();
  absl::Status BeginNext();
  void FinishStep();

  // StepRunner::Host:
  void Launch(int action, GroupKind group,
              const comm::Collective& collective) override;
  void Send(bool forward, int micro_batch, const nn::Tensor& tensor) override;

  Self self_ = nullptr;
  RankContextPtr context_;
  ComputePeersPtr peers_;
  std::unique_ptr<StepRunner> runner_;
  std::deque<RunSteps> queue_;
  std::size_t next_in_front_ = 0;  // step of queue_.front() to begin next
  StepsDone done_;                 // of queue_.front(), so far
  bool running_ = false;           // a step has begun and not ended
  bool resuming_ = false;          // a resume message is under way
  int rounds_left_ = 0;            // resumes that only look into the mailbox
};

ComputeActor::behavior_type ComputeBehavior(ComputeState::Self self,
                                            RankContextPtr context,
                                            SupervisorActor supervisor);

}  // namespace troupe::actors

#endif  // ACTORS_COMPUTE_STRAND_H_

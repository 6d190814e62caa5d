// The compute strand of one rank: kernels, tapes and updates run here, through
// the StepRunner, and nowhere else. Its steps run on a fiber (strand_fiber.h):
// one that waits for a message gives the thread back to the actor, which
// resumes it with the next.
//
// Takes  ComputePeers                      first of all
//        RunSteps {kind, first, batches}   from its rank
//        Launched {step, action, status}   from its communication strand
//        Transfer                          from a neighbouring stage
//        resume                            from itself: go on after a look
//        drive                             its device, or a collective that the
//                                          fiber waits for, has come on
//        (snapshot, step)                  -> SnapshotPtr
// Gives  StepsDone to its rank, or whoever it computes for; Launch to its
//        communication strand, but for collectives that are work of devices
//        (comm/device): it starts these; Transfer to its neighbours, through a
//        StageLink
// Fails  with the runner's status, as a Failure
//
// A device that works later than it is told (nn/kernels/device_queues.h) is
// driven by messages of the strand to itself, as long as that finds anything
// done; a GPU's watcher sends one when there is more.

#ifndef ACTORS_STRANDS_COMPUTE_STRAND_H_
#define ACTORS_STRANDS_COMPUTE_STRAND_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "actors/engine/step_runner.h"
#include "actors/engine/strand_fiber.h"
#include "actors/protocol/messages.h"
#include "actors/setup/rank_context.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

class ComputeState : public StepRunner::Host {
 public:
  static inline const char* name = "compute";
  using Self = ComputeActor::stateful_pointer<ComputeState>;

  ~ComputeState() override = default;

  absl::Status Init(Self self, RankContextPtr context,
                    const Checkpoint* checkpoint);
  void Wire(ComputePeersPtr peers) { peers_ = std::move(peers); }

  absl::Status Enqueue(const RunSteps& steps);
  absl::Status OnLaunched(const Launched& launched);
  absl::Status OnTransfer(const Transfer& transfer);
  absl::Status OnResume();
  absl::Status OnDrive();
  absl::StatusOr<PendingSnapshot> MakeSnapshot(std::int64_t step) {
    return runner_->MakeSnapshot(step);
  }
  // `pending` as the answer to the current message, now or when it is there.
  caf::result<SnapshotPtr> Answer(PendingSnapshot pending);

 private:
  // What a run has sent to its rank, or will when its losses are there.
  struct Run {
    StepsDone done;
    std::size_t steps;
  };
  struct SnapshotRequest {
    caf::typed_response_promise<SnapshotPtr> promise;
    PendingSnapshot snapshot;
  };

  // Goes on after a message that is news to the fiber.
  absl::Status Go();
  // Resumes the fiber, unless it waits for a look into the mailbox.
  absl::Status Resume();
  // Sees to it that the device is driven, at once and when `event` is done.
  void DriveLater();
  void DriveAfter(const base::Event& event);
  // For a stage that has no way to the device's memory.
  void MoveToHost(Transfer& transfer);
  // A collective that was given to a device may still fail: it is told as if
  // it had not been started.
  void TellFailure(const Launched& launched);
  // Sends what has come from the device.
  absl::Status SendWhatIsThere();
  // The fiber's function: runs what is in the queue, for ever.
  absl::Status RunQueue();
  absl::Status RunFront();

  // StepRunner::Host:
  void Launch(int action, pipeline::GroupId group,
              const comm::Collective& collective,
              const comm::Event& after) override;
  void Send(int stage, bool forward, int micro_batch,
            const nn::TensorList& tensors, const base::Event& ready) override;
  absl::Status StepDone(StepKind kind, std::int64_t step) override;

  Self self_ = nullptr;
  RankContextPtr context_;
  ComputePeersPtr peers_;
  std::unique_ptr<StepRunner> runner_;
  nn::DeviceQueues* queues_ = nullptr;  // null: the device works at once
  bool driving_ = false;                // a drive message is under way
  std::function<void()> notify_;        // sends one, from any thread
  std::deque<RunSteps> queue_;
  std::deque<Run> runs_;  // that have begun
  std::deque<SnapshotRequest> snapshots_;
  bool running_ = false;  // the fiber is inside a run
  bool looking_ = false;  // a resume message is under way
  int rounds_left_ = 0;   // resumes that only look into the mailbox
  absl::Status failure_;  // why the fiber ended
  // Last: what its frames refer to outlives it.
  std::optional<StrandFiber> fiber_;
};

// `checkpoint`: where the rank starts from, read at once and dropped; or null.
ComputeActor::behavior_type ComputeBehavior(
    ComputeState::Self self, RankContextPtr context, FailureSink failures,
    std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_COMPUTE_STRAND_H_

// The compute strand of one rank: the only actor that runs the rank's kernels,
// tapes and updates, through the StepRunner. Its steps run on a fiber
// (strand_fiber.h): a step that waits for a message yields the thread to the
// actor, which resumes the fiber after the next message.
//
// Takes  ComputePeers                      before all other messages
//        RunSteps {kind, first, batches}   from its rank
//        Launched {step, action, status}   from its communication strand
//        Transfer                          from a neighbouring stage
//        resume                            from itself: the mailbox was read,
//                                          the fiber continues
//        drive                             from itself, its device, or a
//                                          collective that the fiber waits for:
//                                          there may be progress
//        (snapshot, step)                  -> SnapshotPtr
// Gives  StepsDone to its rank, or to the actor in its place
//        (ComputePeers::rank); Launch to its communication strand, except for
//        collectives on devices (comm/device), which it starts itself; Transfer
//        to its neighbours, through a StageLink
// Fails  with the runner's status, as a Failure
//
// A device with queues (nn/kernels/device_queues.h) is driven by messages of
// the strand to itself, as long as each finds completed work; a GPU's watcher
// sends one when more has completed.

#ifndef ACTORS_STRANDS_COMPUTE_STRAND_H_
#define ACTORS_STRANDS_COMPUTE_STRAND_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "actors/engine/fiber/strand_fiber.h"
#include "actors/engine/step_runner.h"
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
  absl::StatusOr<PendingSnapshot> MakeSnapshot(const TakeSnapshot& take);
  // Answers the current message with the snapshot, once it is complete.
  caf::result<SnapshotPtr> Answer(PendingSnapshot pending);

 private:
  // A run whose StepsDone is sent when it has the losses of all `steps`.
  struct Run {
    StepsDone done;
    std::size_t steps;
  };
  struct SnapshotRequest {
    caf::typed_response_promise<SnapshotPtr> promise;
    PendingSnapshot snapshot;
  };

  // Resumes the fiber after a message that is news to it, then drives the
  // device.
  absl::Status Go();
  // Resumes the fiber, unless a resume message is under way.
  absl::Status Resume();
  // Sends a drive message, at once or when `event` has completed.
  void DriveLater();
  void DriveAfter(const base::Event& event);
  // Copies the tensors to host memory, for a stage that cannot read the
  // device's.
  void MoveToHost(Transfer& transfer);
  // Makes this strand get a Launched with the error if a collective that was
  // enqueued on a device fails later.
  void TellFailure(const Launched& launched);
  // Sends the runs and snapshots whose copies to the host are complete.
  absl::Status SendWhatIsThere();
  // The fiber's function: runs the steps in the queue, until one fails.
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
  nn::DeviceQueues* queues_ = nullptr;  // null on the CPU
  bool driving_ = false;                // whether its own drive is under way
  std::function<void()> notify_;        // sends a drive, from any thread
  std::deque<RunSteps> queue_;
  std::deque<Run> runs_;  // runs that have begun and were not sent
  std::deque<SnapshotRequest> snapshots_;
  bool running_ = false;  // whether the fiber is inside a run
  bool looking_ = false;  // whether a resume message is under way
  int rounds_left_ = 0;   // resumes that are only sent again (TestHooks)
  absl::Status failure_;  // error that ended the fiber
  // The fiber is last: all that its frames refer to outlives it.
  std::optional<StrandFiber> fiber_;
};

// `checkpoint`: the state from which the rank starts; null starts anew. It is
// read at once and released.
ComputeActor::behavior_type ComputeBehavior(
    ComputeState::Self self, RankContextPtr context, FailureSink failures,
    std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_COMPUTE_STRAND_H_

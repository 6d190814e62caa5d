// The compute strand of one rank whose steps are code of the user's: it runs
// the program of the rank on its fiber (strand_fiber.h), in the place of a
// table of actions.
//
// Takes  begin    once: runs the program
//        resume   from itself: the mailbox was read, the fiber continues
//        drive    from the groups that the fiber waits for, or the device:
//                 there is progress
//        watch    to itself: has a wait taken too long?
// Gives  HandOver to its communication strand (program_comm.h), once there is
//        something to hand over; its end, and its failure, to the
//        ProgramOutcome
// Fails  with the program's status, or the text of its exception. It then
//        aborts all groups, so that its peers end, too.
//
// A wait for a collective spins, if the strand has a thread of its own; a wait
// for a message, or for a device, lets the thread sleep.

#ifndef ACTORS_PROGRAM_PROGRAM_STRAND_H_
#define ACTORS_PROGRAM_PROGRAM_STRAND_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "actors/caf/caf.h"
#include "actors/engine/fiber/strand_fiber.h"
#include "actors/program/call_note.h"
#include "actors/program/current_wait.h"
#include "actors/program/program_comm.h"
#include "actors/program/program_device.h"
#include "actors/program/program_groups.h"
#include "actors/program/program_outcome.h"
#include "actors/program/program_rank.h"
#include "actors/program/program_spec.h"
#include "actors/protocol/drive_calls.h"
#include "actors/protocol/messages.h"
#include "nn/kernels/kernel_choices.h"
#include "nn/kernels/kernels.h"

namespace troupe::actors {

// State that the ranks of a program share.
struct ProgramContext {
  ProgramContext(ProgramSpec program, GroupMaker make_group)
      : spec(std::move(program)),
        groups(spec.ranks, std::move(make_group)),
        outcome(spec.ranks),
        calls(spec.ranks),
        returned(spec.ranks) {}

  // Returns which ranks have returned without an error.
  std::vector<bool> Returned() const {
    return {returned.begin(), returned.end()};
  }

  const ProgramSpec spec;
  ProgramGroups groups;
  ProgramOutcome outcome;
  // The ranks of this process are [first, last).
  int first = 0;
  int last = spec.ranks;
  // Number of the ranks of this host in earlier processes.
  int ranks_before = 0;
  // Whether the groups are NCCL's, which a rank's device makes.
  bool by_nccl = false;
  // Why ranks here cannot begin: there are too few devices.
  absl::Status refused;
  // Algorithms of the kernels here.
  const std::shared_ptr<nn::KernelChoices> choices =
      std::make_shared<nn::KernelChoices>();
  // spec.inline_bytes, or what was measured in its place.
  std::int64_t inline_bytes = 0;
  // Called when the program of a rank here has ended. Null: it concerns nobody.
  std::function<void(int rank, const absl::Status& status)> on_end;
  // The call that each rank is in, as far as it is here, and whether its
  // program has returned without an error.
  std::deque<CallNote> calls;
  std::deque<std::atomic<bool>> returned;
};
using ProgramContextPtr = std::shared_ptr<ProgramContext>;

class ProgramState : private ProgramRank {
 public:
  static inline const char* name = "program";
  using Self = ProgramActor::stateful_pointer<ProgramState>;

  ~ProgramState() override;

  void Init(Self self, ProgramContextPtr context, int rank);
  // Resumes the fiber, unless a resume message is under way.
  void Resume();
  void OnResume();
  void OnDrive();
  void OnWatch();
  // Ends the rank, with the failure of its program if it has one. Calls after
  // the first do nothing.
  void End(const absl::Status& status);

 private:
  // ProgramRank, called on the fiber:
  int rank() const override { return rank_; }
  int size() const override { return context_->spec.ranks; }
  bool shares_thread() const override;
  const std::shared_ptr<nn::Kernels>& kernels() const override {
    return device_.kernels();
  }
  absl::StatusOr<std::shared_ptr<comm::Communicator>> MakeGroup(
      const std::vector<int>& ranks) override;
  absl::Status Run(comm::Communicator& group,
                   const comm::Collective& collective) override;
  absl::Status Await(comm::Communicator& group,
                     const base::Event& done) override;
  void AwaitAny(absl::Span<const StartedIn> started) override;
  bool HandsOver(std::int64_t bytes) const override {
    return bytes > context_->inline_bytes;
  }
  base::Event HandOver(const std::shared_ptr<comm::Communicator>& group,
                       const comm::Collective& collective,
                       const base::Event& after) override;
  absl::Status AwaitHandedOver(comm::Communicator& group,
                               const base::Event& done) override;
  void AwaitEvent(const base::Event& event) override;
  StrandWait& wait() override { return *fiber_; }
  CallNote& call() override { return context_->calls[rank_]; }

  absl::Status RunBody();
  // Waits until the device has made all groups: a rank that leaves one earlier
  // would keep its peers from making theirs.
  absl::Status AwaitGroups();
  // Opens the rank's kernels.
  absl::Status OpenDevice();
  // Waits for an event of the device, for nn::Synchronize().
  void AwaitDevice(const base::Event& event);
  ProgramCommActor& comm();
  // Adds the rank, and what its peers were doing.
  absl::Status WithCalls(const absl::Status& status) const;
  // Asks for a watch message `after` from now, if none is under way.
  void WatchAfter(absl::Duration after);

  Self self_ = nullptr;
  ProgramContextPtr context_;
  int rank_ = 0;
  DriveCalls calls_;
  ProgramCommActor comm_;  // null until something is handed over
  bool looking_ = false;   // whether a resume message is under way
  bool watching_ = false;  // whether a watch message is under way
  ProgramDevice device_;
  CurrentWait wait_;
  absl::Status ended_with_;
  bool ended_ = false;
  // The fiber is last: all that its frames refer to outlives it.
  std::optional<StrandFiber> fiber_;
};

ProgramActor::behavior_type ProgramBehavior(ProgramState::Self self,
                                            ProgramContextPtr context,
                                            int rank);

// Spawns the strands of all ranks and starts them. The caller keeps the handles
// until the program has ended: groups know a strand by a weak one.
std::vector<ProgramActor> SpawnProgram(caf::actor_system& system,
                                       const ProgramContextPtr& context);

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_PROGRAM_STRAND_H_

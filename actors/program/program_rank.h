// Interface of a strand to the program that it runs: groups, and waits that let
// the strand go on reading its messages. The front's Rank (troupe/rank.h) is
// made on top.
//
//   absl::Status Body(ProgramRank& self) {
//     TROUPE_ASSIGN_OR_RETURN(auto world, self.MakeGroup(AllRanks(self)));
//     const CallNote::Scope call(self.call(), "barrier", CallPlace::Here());
//     return self.Run(*world, comm::Barrier());
//   }
//
// Errors: those of the communicators; kDeadlineExceeded if a wait takes longer
// than ProgramSpec::timeout, with what it waits for.
// Threads: the rank's own strand.

#ifndef ACTORS_PROGRAM_PROGRAM_RANK_H_
#define ACTORS_PROGRAM_PROGRAM_RANK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/program/call_note.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "nn/kernels/kernels.h"

namespace troupe::actors {

class StrandWait;  // actors/engine/fiber/strand_wait.h

// Something that was started in a group.
struct StartedIn {
  comm::Communicator* group;
  base::Event done;
  bool drives;  // whether the waiting strand drives the group
};

class ProgramRank {
 public:
  virtual ~ProgramRank() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Whether all ranks share one thread (the simulator). Nothing may then block
  // it for what another rank does.
  virtual bool shares_thread() const = 0;

  // Kernels of the rank's device. If that has queues, all waits of this
  // interface, and nn::Synchronize(), drive it.
  virtual const std::shared_ptr<nn::Kernels>& kernels() const = 0;

  // Returns this rank's communicator in a new group (ProgramGroups::Join()). On
  // a device with queues its collectives are work of the device, which Start()
  // enqueues (Communicator::UseDevice), and the communication strand drives it.
  virtual absl::StatusOr<std::shared_ptr<comm::Communicator>> MakeGroup(
      const std::vector<int>& ranks) = 0;
  // Runs `collective`, after what kCompute has been given, to its end.
  virtual absl::Status Run(comm::Communicator& group,
                           const comm::Collective& collective) = 0;
  // Drives the group until `done`, of something that was started in it, has
  // completed, and returns its status.
  virtual absl::Status Await(comm::Communicator& group,
                             const base::Event& done) = 0;
  // Drives the groups of several until one of them has completed, with any
  // status: peers may wait for another one first.
  virtual void AwaitAny(absl::Span<const StartedIn> started) = 0;
  // Whether collectives over `bytes` are worth handing over to the rank's
  // communication strand (ProgramSpec::inline_bytes). Those of a device start
  // without it.
  virtual bool HandsOver(std::int64_t bytes) const = 0;
  // Lets the communication strand start and drive a collective, in the order of
  // these calls, while the program goes on. From the first one on the group is
  // that strand's: this one may wait for it by AwaitHandedOver() and abort it.
  // Returns the event of the collective.
  virtual base::Event HandOver(const std::shared_ptr<comm::Communicator>& group,
                               const comm::Collective& collective,
                               const base::Event& after) = 0;
  virtual absl::Status AwaitHandedOver(comm::Communicator& group,
                                       const base::Event& done) = 0;
  // Waits for an event that another strand of this process completes, without a
  // limit: that strand may compute for an hour.
  virtual void AwaitEvent(const base::Event& event) = 0;
  virtual StrandWait& wait() = 0;

  // The call that the program is in.
  virtual CallNote& call() = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_PROGRAM_RANK_H_

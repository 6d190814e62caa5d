// The communication strand of one rank of a program: drives the collectives
// that the program has handed over, while the program goes on. A job's rank has
// actors/strands/comm_strand.h.
//
// Takes  HandOver {group, collective, after, done}
//        DriveGroup {group}
//        drive  (to itself, and from the groups' wake-ups)
// Gives  the end of each collective, by its event
// Fails  never by itself
//
// Only this strand starts and drives collectives in a group that it was given
// one of; any thread may abort the group. In a group of DriveGroup, of devices,
// the rank's own strand starts them, and this one moves those that go through
// the host (comm/device/staged_group.h). It does not keep a group: who made it
// does.
//
// One drive message runs a bounded number of chunks, since further collectives
// may wait to be started; in the simulator one chunk, so that ranks interleave.

#ifndef ACTORS_PROGRAM_PROGRAM_COMM_H_
#define ACTORS_PROGRAM_PROGRAM_COMM_H_

#include <memory>
#include <vector>

#include "actors/caf/caf.h"
#include "actors/protocol/drive_calls.h"
#include "actors/protocol/messages.h"
#include "base/event.h"
#include "comm/communicator.h"

namespace troupe::actors {

// A collective to be run; in-process.
struct HandOver {
  std::shared_ptr<comm::Communicator> group;
  comm::Collective collective;
  base::Event after;  // completes when the tensors may be read
  base::Event done;   // is completed with the collective, or its error
};

// A group on a device to be driven; in-process.
struct DriveGroup {
  std::shared_ptr<comm::Communicator> group;
};

using ProgramCommActor =
    caf::typed_actor<caf::reacts_to<HandOver>, caf::reacts_to<DriveGroup>,
                     caf::reacts_to<drive_atom>>;  // groups have work

struct ProgramCommState {
  static inline const char* name = "program-comm";
  DriveCalls calls;
  std::vector<std::weak_ptr<comm::Communicator>> groups;

  ~ProgramCommState();

  // Drives the group from now on.
  void Add(const std::shared_ptr<comm::Communicator>& group);
  void Start(const HandOver& handed);
  // Runs one chunk of any group. Returns false if there is no work now.
  bool Drive();
};

ProgramCommActor::behavior_type ProgramCommBehavior(
    ProgramCommActor::stateful_pointer<ProgramCommState> self);

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::HandOver)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::DriveGroup)

#endif  // ACTORS_PROGRAM_PROGRAM_COMM_H_

// The bugs that plant.py plants into copies of sources of the project, by this
// folder's bugs.txt.
//
//   PlantedBug<Bug>() = Bug::kEndIsNotWaitedFor;     // planted_bug.h
//
// Threads: one.

#ifndef TESTS_COMM_LINKS_PLANTED_BUG_H_
#define TESTS_COMM_LINKS_PLANTED_BUG_H_

#include "tests/actors/sim/planted/planted_bug.h"

namespace troupe {

enum class Bug {
  kNone,
  // The sender: comm/mpi/mpi_sends.cc.
  kReleasedUnread,
  kSmallFramesOvertake,
  kMpiGoesOnAfterTheEnd,
  // The receiver: comm/mpi/mpi_payloads.cc.
  kUsedUnconfirmed,
  kRevokedIsUsed,
  kEnd,
};

}  // namespace troupe

#endif  // TESTS_COMM_LINKS_PLANTED_BUG_H_

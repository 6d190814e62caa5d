// Names of the bugs that plant.py adds to copies of what reduces the buckets of
// a DDP; this folder's bugs.txt defines them.
//
//   PlantedBug<Bug>() = Bug::kLaunchedAsReady;          // planted_bug.h
//
// Threads: one.

#ifndef TESTS_TROUPE_PLANTED_BUG_H_
#define TESTS_TROUPE_PLANTED_BUG_H_

#include "tests/actors/sim/planted/planted_bug.h"

namespace troupe {

enum class Bug {
  kNone,
  // Buckets are reduced in the order in which a rank completes them, which is
  // not that of its peers.
  kLaunchedAsReady,
  // DDP divides by the number of ranks, and so does its hook.
  kAveragedTwice,
  kEnd,
};

}  // namespace troupe

#endif  // TESTS_TROUPE_PLANTED_BUG_H_

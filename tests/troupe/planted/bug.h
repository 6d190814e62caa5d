// Names of the bugs that plant.py adds to copies of what a DDP consists of;
// this folder's bugs.txt defines them.
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
  // StepInBackward() updates a bucket when its gradients are complete, before
  // they are reduced.
  kUpdatedBeforeReduced,
  // A second synced backward does not wait for the reductions of the first, and
  // adds to what they read.
  kAddedWhileReduced,
  // Join(): the backward of a rank that has ended, which has no rows, marks the
  // parameters of its forward as used.
  kShadowUses,
  // Join(): a rank that has ended steps with its own rate.
  kShadowsRate,
  // Join(): buffers are those of rank 0, also when that has ended.
  kBuffersOfRank0,
  // The rank that proposes an order of reductions takes it at once, its peers
  // one backward later.
  kSwappedEarly,
  kEnd,
};

}  // namespace troupe

#endif  // TESTS_TROUPE_PLANTED_BUG_H_

// Names of the bugs that plant.py adds to a copy of the loop engine; this
// folder's bugs.txt defines them.
//
//   PlantedBug<Bug>() = Bug::kHoldForgotten;            // planted_bug.h
//
// Threads: one.

#ifndef TESTS_ACTORS_ENGINE_LOOP_PLANTED_BUG_H_
#define TESTS_ACTORS_ENGINE_LOOP_PLANTED_BUG_H_

#include "tests/actors/sim/planted/planted_bug.h"

namespace troupe {

enum class Bug {
  kNone,
  // A backward under NoSync() reports buckets as complete: they are reduced
  // before the last backward has added to them.
  kHoldForgotten,
  // Each rank divides by the number of ranks, and so does the reduction.
  kAveragedTwice,
  // A parameter counts as used if the last backward of a step has used it.
  kMarksOfTheLastBackward,
  // Each rank leaves out what itself has not used.
  kOwnMarksAlone,
  // ZeroGrad() discards the marks and not the gradients: the next backward adds
  // to them.
  kGradientsKept,
  // A synced backward overwrites what those under NoSync() have added up.
  kUnsyncedLost,
  // static_graph believes its promise and does not check it.
  kStaticUnchecked,
  kEnd,
};

}  // namespace troupe

#endif  // TESTS_ACTORS_ENGINE_LOOP_PLANTED_BUG_H_

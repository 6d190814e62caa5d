// The bugs that plant.py plants into copies of the cursor's and the bound's
// sources, by this folder's bugs.txt.
//
//   PlantedBug<Bug>() = Bug::kOneNeedIsEnough;
//
// Threads: one.

#ifndef TESTS_PIPELINE_PLANTED_BUG_H_
#define TESTS_PIPELINE_PLANTED_BUG_H_

#include "tests/actors/sim/planted/planted_bug.h"

namespace troupe {

enum class Bug {
  kNone,
  // Bugs in the cursor, pipeline/table/table_cursor.cc.
  kForgottenWhileComputing,  // actions that become ready then are not offered
  kOneNeedIsEnough,
  // Bugs in the bound, pipeline/table/activation_bound.cc.
  kOneActivationMore,
  kEnd,
};

}  // namespace troupe

#endif  // TESTS_PIPELINE_PLANTED_BUG_H_

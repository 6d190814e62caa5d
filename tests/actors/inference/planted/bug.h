// Names of the bugs that plant.py adds to copies of Troupe's sources; this
// folder's bugs.txt defines them. Each spoils the keys and values that a stage
// keeps of a text.
//
//   PlantedBug<Bug>() = Bug::kOnlyFirstStage;   // planted_bug.h
//
// Threads: one.

#ifndef TESTS_ACTORS_INFERENCE_PLANTED_BUG_H_
#define TESTS_ACTORS_INFERENCE_PLANTED_BUG_H_

#include "tests/actors/sim/planted/planted_bug.h"

namespace troupe {

enum class Bug {
  kNone,
  // actors/chunks/chunk.cc.
  kPositionOffByOne,
  kNotCutBack,
  kPlacesOfTheStepBefore,
  kOnlyFirstStage,
  kEnd,
};

}  // namespace troupe

#endif  // TESTS_ACTORS_INFERENCE_PLANTED_BUG_H_

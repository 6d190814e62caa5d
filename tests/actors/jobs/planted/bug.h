// Names of the bugs that plant.py adds to copies of Troupe's sources; this
// folder's bugs.txt defines them. Each removes a wait between the queues of a
// device.
//
//   PlantedBug<Bug>() = Bug::kForwardBeforeUpdate;   // planted_bug.h
//
// Threads: one.

#ifndef TESTS_ACTORS_JOBS_PLANTED_BUG_H_
#define TESTS_ACTORS_JOBS_PLANTED_BUG_H_

#include "tests/actors/sim/planted/planted_bug.h"

namespace troupe {

enum class Bug {
  kNone,
  // actors/engine/bucket_events.cc.
  kUpdateBesideItsReader,
  kUpdateBeforeItsSum,
  kForwardBeforeUpdate,
  // actors/chunks/step/step_loss.cc.
  kUpdateBeforeTheCount,
  kScalarsWrittenTooEarly,
  kEnd,
};

}  // namespace troupe

#endif  // TESTS_ACTORS_JOBS_PLANTED_BUG_H_

// The bugs that plant.py plants into copies of sources of the project, by this
// folder's bugs.txt.
//
//   PlantedBug<Bug>() = Bug::kFarewellIsLost;        // planted_bug.h
//
// Threads: one.

#ifndef TESTS_ACTORS_CLUSTER_PLANTED_BUG_H_
#define TESTS_ACTORS_CLUSTER_PLANTED_BUG_H_

#include "tests/actors/sim/planted/planted_bug.h"

namespace troupe {

enum class Bug {
  kNone,
  // In process 0: actors/cluster/coordinator.cc.
  kStaleCrewIsTaken,
  kStaleFailureIsTaken,
  kHeartbeatByAnotherClock,
  kOwnPauseBlamesOthers,
  kBlamesWhoHasLeft,
  kBeginsWithHoles,
  kLateJoinerIsNotRefused,
  kEarlyAskerIsForgotten,
  kEarlySupervisorIsForgotten,
  kNoEndWithoutCrew,
  kDownIsNotHeard,
  kRefusalToOneOnly,
  kStrangerEndsTheJob,
  kSlowIsNotMissed,
  kPunctualIsBlamed,
  kSilenceWaitsForABeat,
  // In each other process: actors/cluster/agent.cc.
  kFarewellIsLost,
  kStaleEndIsTaken,
  kAgentBlamesProcess0,
  kLateCrewLivesOn,
  // The supervisor: supervisor_end.cc, held_verdict.cc and saving.cc of
  // actors/supervision.
  kWhoeverLeavesHasFailed,
  kVictimIsBlamed,
  kVerdictIsNotHeld,
  kAsksOnce,
  kCommitsBeforeTheLastShard,
  kLostOwnerIsAwaited,
  // The writers of checkpoints, and links of stages: checkpointer.cc and
  // fabric_stage_link.cc of actors/strands.
  kShardFailureIsKept,
  kUnfinishedIsLeft,
  kFirstMicroBatchOnly,
  kEnd,
};

}  // namespace troupe

#endif  // TESTS_ACTORS_CLUSTER_PLANTED_BUG_H_

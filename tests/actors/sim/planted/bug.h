// The bugs that plant.py plants into copies of the house's sources (bugs.txt),
// and which of them is there now.
//
//   PlantedBug() = Bug::kNeverIdle;
//   ... no rank says now that it wants to be woken ...
//   if (Planted(Bug::kNeverIdle)) return;        // in bugs.txt
//
// Threads: one.

#ifndef TESTS_ACTORS_SIM_PLANTED_BUG_H_
#define TESTS_ACTORS_SIM_PLANTED_BUG_H_

namespace troupe {

enum class Bug {
  kNone,
  // The step engine: actors/step_runner.cc.
  kEarlyTransferIsLost,
  kTransferOfAnotherStepIsTaken,
  kAnotherBucketIsReduced,
  kBucketIsReleasedWhenReady,
  kMicroBatchWithoutLoss,
  // The cursor: pipeline/table_cursor.cc.
  kReductionsCountedOverSteps,
  kOneNeedIsEnough,
  // The reducer and the communication strand: actors/reducer.cc,
  // actors/comm_strand.cc.
  kInlineIsLaunched,
  kLossOfOneRank,
  kGroupsMixedUp,
  kDoesNotDriveOn,
  kToldWhenStarted,
  // The communicator: comm/local/group_state.cc, local_group.cc.
  kDoneBeforeTheLastBlock,
  kLastElementIsNotReduced,
  kSumInOrderOfWhoIsFirst,
  kOwnReplicaOnly,
  kNeverIdle,
  kLooksOnce,
  // Who watches over all ranks: actors/supervisor.cc.
  kFastestRankCounts,
  kOneEvaluationIsMissing,
  kEnd,
};

inline Bug& PlantedBug() {
  static Bug bug = Bug::kNone;
  return bug;
}
inline bool Planted(Bug bug) { return PlantedBug() == bug; }

}  // namespace troupe

#endif  // TESTS_ACTORS_SIM_PLANTED_BUG_H_

// The bugs that plant.py plants into copies of Troupe's sources, by this
// folder's bugs.txt.
//
//   PlantedBug<Bug>() = Bug::kNeverIdle;        // planted_bug.h
//
// Threads: one.

#ifndef TESTS_ACTORS_SIM_PLANTED_BUG_H_
#define TESTS_ACTORS_SIM_PLANTED_BUG_H_

#include "tests/actors/sim/planted/planted_bug.h"
#include "tests/actors/sim/planted/streams.h"

namespace troupe {

enum class Bug {
  kNone,
  // The step engine: actors/engine/inbox.cc, dispatcher.cc, actions/forward.cc.
  kEarlyTransferIsLost,
  kTransferOfAnotherStepIsTaken,
  kAnotherBucketIsReduced,
  kBucketIsReleasedWhenReady,
  kMicroBatchWithoutLoss,
  // Reductions in several rounds: actors/engine/dispatcher.cc,
  // actions/reductions.cc.
  kFirstRoundIsTheLast,
  kSumIsNotTaken,
  // Owners of slices of states and gradients: actions/reductions.cc.
  kSlicesAreNotGathered,
  kFindingsOfOneSlice,
  kNormsOfOneSlice,
  kLastMicroBatchAlone,
  // Values that are gathered before their uses: actors/engine/dispatcher.cc,
  // actions/reductions.cc, actors/strands/loader.cc.
  kUseComesBeforeItsGather,
  kReleasedAtTheFirstUse,
  kValuesOfTheFirstOwner,
  kEvaluationsDifferInLength,
  // Pieces along tp: actors/chunks/chunk.cc, chunk_parameters.cc,
  // actions/reductions.cc, actors/engine/share_state.cc.
  kCopiesCountForEachPiece,
  kFindingsOfOnePiece,
  kLossOfAllCopies,
  kSlicesOfCopiesCountForEachPiece,
  kNormsOfOnePiece,
  kNormsOfCopiesCountForEachPiece,
  kNormsOfEachReplicaCount,
  kFirstPieceIsSavedForAll,
  // Checkpoints that owners write in place: actors/chunks/saved_tensors.cc,
  // actors/supervision/saving.cc.
  kPieceIsWrittenAtItsOwnPlace,
  kPublishedBeforeAllHaveWritten,
  // Tokens that ranks along tp share: actors/chunks/gradient_ledger.cc.
  kPartsOfGradientsStayParts,
  // Pieces of the vocabulary: nn/ops/loss.cc.
  kSmoothingByLocalClasses,
  kLogitsCountForEachPiece,
  kPaddingIsCounted,
  // Steps that overlap: actors/engine/dispatcher.cc.
  kForwardDoesNotWait,
  kForwardWaitsForNoGather,
  kTailTakesTheNextScalars,
  // The cursor: pipeline/table/table_cursor.cc.
  kReductionsCountedOverSteps,
  kLossOvertakesRounds,
  kOneNeedIsEnough,
  // The reducer and the communication strand: actors/engine/reducer.cc,
  // actors/strands/comm_strand.cc.
  kInlineIsLaunched,
  kLossOfOneRank,
  kGroupsMixedUp,
  kDoesNotDriveOn,
  kToldWhenStarted,
  // The communicator: comm/local/group_state.cc, group_work.cc, local_group.cc.
  kDoneBeforeTheLastBlock,
  kLastElementIsNotReduced,
  kSumInOrderOfWhoIsFirst,
  kOwnReplicaOnly,
  kNeverIdle,
  kLooksOnce,
  // The supervisor: actors/supervision/supervisor.cc, supervisor_end.cc.
  kFastestRankCounts,
  kOneEvaluationIsMissing,
  kFailureEndsTheCheckpoint,
  // Equal replicas: actors/engine/actions/update.cc, share_state.cc.
  kReplicaMissesAnUpdate,
  kReplicaKeepsItsBuffers,
  kEnd,
};

// Deadlocks and wrong gradients known from other projects
// (known_bugs_test.cc).
enum class KnownBug {
  kNone,
  kReceiveBeforeCompute,     // a receive is posted before independent compute
  kShapesInOrder,            // stages exchange shapes, the middle ones in order
  kSendHoldsTheStream,       // a send waits for its receiver, and blocks all
  kTiedCountsTwice,          // a weight that two layers share gets too much
  kScaledByMicroBatchesToo,  // gradients are divided by their number, too
  kNothingToReduce,          // a stage without parameters leaves reductions out
};

// The rank for which this thread computes, for kSumInOrderOfWhoIsFirst.
inline thread_local int who_is_first = 0;

}  // namespace troupe

#endif  // TESTS_ACTORS_SIM_PLANTED_BUG_H_

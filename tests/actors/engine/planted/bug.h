// Names of the bugs that plant.py adds to copies of the sources that drive
// GPUs; this folder's bugs.txt defines them.
//
//   PlantedBug<Bug>() = Bug::kEventNotWaitedFor;        // planted_bug.h
//
// Threads: one.

#ifndef TESTS_ACTORS_ENGINE_PLANTED_BUG_H_
#define TESTS_ACTORS_ENGINE_PLANTED_BUG_H_

#include "tests/actors/sim/planted/planted_bug.h"

namespace troupe {

enum class Bug {
  kNone,
  // A stream's queue: nn/kernels/cuda/device/stream_queue.cc.
  kEventNotWaitedFor,
  kDoneWithoutAsking,
  kRecordedBeforeHeldWork,
  // The device: nn/kernels/cuda/device/cuda_device.cc.
  kOvertakesAHeldWait,
  kStagingUsedAgainTooEarly,
  kReadBackTooEarly,
  // Events and memory: nn/kernels/cuda/device/event_pool.cc, device_memory.cc.
  kEventUsedAgainTooEarly,
  kFreedWhileInUse,
  // Batches: actors/chunks/step/staged_copy.cc.
  kBatchNotWaitedFor,
  kRecordedBeforeTheCopy,
  kBatchOverwritten,
  // Groups: comm/device/device_state.cc, actors/engine/queue_work.cc.
  kReducedBeforeTheGradient,
  kOneRankNotWaitedFor,
  kRecordedOnAnotherStream,
  // Losses: actors/chunks/step/loss_reader.cc.
  kLossReadTooEarly,
  kLossCopiedTooEarly,
  kScalarsOverwritten,
  // Updates: actors/engine/bucket_events.cc.
  kUpdateBesideReduction,
  kReaderBesideUpdate,
  // Whole steps as graphs: actors/engine/recording/graph_inputs.cc.
  kGraphWithOldPointer,
  // The step engine: actors/engine/inbox.cc.
  kTransferReadTooEarly,
  kTransferMemoryUsedAgain,
  kEnd,
};

}  // namespace troupe

#endif  // TESTS_ACTORS_ENGINE_PLANTED_BUG_H_

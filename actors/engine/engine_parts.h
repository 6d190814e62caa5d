// Types that the parts of a rank's step engine share: the setup that the owner
// gives (EngineSetup), the interface that the owner implements (EngineHost),
// and references to the parts that actions use (EngineParts).
//
//   TROUPE_RETURN_IF_ERROR(parts.ChunkOf(action).Forward(action.index));
//   parts.events.AwaitAllUpdates();
//
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_ENGINE_PARTS_H_
#define ACTORS_ENGINE_ENGINE_PARTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "actors/chunks/chunk.h"
#include "actors/chunks/chunk_parameters.h"
#include "actors/chunks/peer_memory.h"
#include "actors/chunks/step/step_types.h"
#include "actors/engine/bucket_events.h"
#include "actors/engine/fiber/quiet_wait.h"
#include "actors/engine/predicted_outputs.h"
#include "actors/engine/rank_device.h"
#include "actors/engine/rank_groups.h"
#include "actors/engine/reducer.h"
#include "actors/engine/step_position.h"
#include "actors/spec/job_spec.h"
#include "base/event.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"
#include "pipeline/plan.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

// Setup of a rank's step engine: of a job, or of a loop that a program writes
// itself (loop/loop_engine.h). All pointers outlive the engine.
struct EngineSetup {
  int rank = 0;
  int local_rank = 0;             // number among the ranks of its host
  const JobSpec* spec = nullptr;  // null in a loop of a program
  const pipeline::Plan* plan = nullptr;
  // The rank's table for training: the plan's, unless a test changes it.
  pipeline::StepTable train_table;
  const RankGroups* groups = nullptr;
  // Number of threads that fill the parameters before the first step.
  int start_threads = 1;
  // Receives the position of the step, for other threads; may be null.
  StepPosition* position = nullptr;
  // Memory of what ranks exchange.
  PeerMemory peer_memory;
};

// Interface of the engine's owner. Each Launch() must later be followed by
// StepRunner::CollectiveDone(step, action), where `step` is the launched_step()
// at the time of the launch.
class EngineHost : public Reducer::Launcher {
 public:
  // Sends tensors (Transfer::tensors) to stage `stage` of this replica, which
  // may be on this rank too. `forward`: activations, from the stage before;
  // else gradients, from the stage after. They may be read once `ready` has
  // completed.
  virtual void Send(int stage, bool forward, int micro_batch,
                    const nn::TensorList& tensors,
                    const base::Event& ready) = 0;
  // Is called when all of a step has ended. Its loss can be taken, and the
  // parameters are those after the step until this returns. An error ends the
  // engine.
  virtual absl::Status StepDone(StepKind /*kind*/, std::int64_t /*step*/) {
    return absl::OkStatus();
  }
};

struct EngineParts {
  const EngineSetup& setup;
  EngineHost& host;
  QuietWait& wait;
  StepPosition& position;
  RankDevice& device;
  std::vector<std::unique_ptr<Chunk>>& chunks;  // none in a loop of a program
  // Parameters of each chunk; in a loop of a program, all of its model.
  const std::vector<ChunkParameters*>& parameters;
  BucketEvents& events;
  Reducer& reducer;
  PredictedOutputs& outputs;
  // Whether a step may begin before the previous one has ended.
  bool overlaps_steps = false;

  nn::Kernels& kernels() const { return device.kernels(); }
  Chunk& ChunkOf(const pipeline::Action& action) const {
    return *chunks[action.chunk];
  }
  ChunkParameters& ParametersOf(const pipeline::Action& action) const {
    return *parameters[action.chunk];
  }
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ENGINE_PARTS_H_

// What the parts of a rank's step engine share: what the owner gives the
// engine, what the engine asks of it, and references to the parts that actions
// work with.
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
#include "actors/chunks/step_types.h"
#include "actors/engine/bucket_events.h"
#include "actors/engine/predicted_outputs.h"
#include "actors/engine/quiet_wait.h"
#include "actors/engine/rank_device.h"
#include "actors/engine/rank_groups.h"
#include "actors/engine/reducer.h"
#include "actors/engine/step_position.h"
#include "actors/spec/job_spec.h"
#include "base/event.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"
#include "pipeline/plan.h"
#include "pipeline/schedule.h"

namespace troupe::actors {

// What the engine of a rank is made from. All pointers outlive it.
struct EngineSetup {
  int rank = 0;
  int local_rank = 0;  // among those of its host
  const JobSpec* spec = nullptr;
  const pipeline::Plan* plan = nullptr;
  // The rank's own table for training; the plan's, unless a test bends it.
  pipeline::StepTable train_table;
  const RankGroups* groups = nullptr;
  // Number of threads that fill the parameters before the first step.
  int start_threads = 1;
  // Where it notes where it stands; may be null.
  StepPosition* position = nullptr;
  // Where gradients live that are the host's; null: where all tensors do.
  nn::Allocator* grad_allocator = nullptr;
};

// What the engine asks of its owner. StepRunner::CollectiveDone(step, action),
// with the step() of the call, must follow each Launch(), later.
class EngineHost : public Reducer::Launcher {
 public:
  // To stage `stage` of this replica, which may be on this rank too. Forward:
  // activations, from the stage before; else gradients (Transfer::tensors).
  // They are there when `ready` is done.
  virtual void Send(int stage, bool forward, int micro_batch,
                    const nn::TensorList& tensors,
                    const base::Event& ready) = 0;
  // All of a step is done: its loss can be taken, and parameters are those
  // behind it until this returns. An error ends the engine.
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
  std::vector<std::unique_ptr<Chunk>>& chunks;
  BucketEvents& events;
  Reducer& reducer;
  PredictedOutputs& outputs;
  // Whether a step may begin before the one before it has ended.
  bool overlaps_steps = false;

  nn::Kernels& kernels() const { return device.kernels(); }
  Chunk& ChunkOf(const pipeline::Action& action) const {
    return *chunks[action.chunk];
  }
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ENGINE_PARTS_H_

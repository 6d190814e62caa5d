// Makes and owns the parts to which EngineParts refers (engine_parts.h), for a
// step engine of either kind: of a job (step_runner.h), or of a loop that a
// program writes itself (loop/loop_engine.h).
//
//   OwnedParts parts(setup, wait, StepTrace(sink, setup.rank));
//   parts.Open(std::move(device), host);
//   Dispatcher dispatcher(options, *parts, MakeActions(*parts), parts.inbox(),
//                         losses, parts.trace());
//   parts.Add(std::move(chunk));               // in the order of chunks
//   parts.RegisterRanges();
//   parts->events.AwaitAllUpdates();
//
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_OWNED_PARTS_H_
#define ACTORS_ENGINE_OWNED_PARTS_H_

#include <memory>
#include <optional>
#include <vector>

#include "actors/chunks/chunk.h"
#include "actors/chunks/chunk_parameters.h"
#include "actors/chunks/step/step_trace.h"
#include "actors/engine/bucket_events.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/fiber/quiet_wait.h"
#include "actors/engine/fiber/strand_wait.h"
#include "actors/engine/inbox.h"
#include "actors/engine/predicted_outputs.h"
#include "actors/engine/rank_device.h"
#include "actors/engine/reducer.h"
#include "actors/engine/step_position.h"

namespace troupe::actors {

class OwnedParts {
 public:
  // The setup, which Open() reads first, and `wait` outlive it.
  OwnedParts(const EngineSetup& setup, StrandWait* wait, StepTrace trace);
  ~OwnedParts();
  OwnedParts(const OwnedParts&) = delete;
  OwnedParts& operator=(const OwnedParts&) = delete;

  // Returns how the engine waits, for layers of its device.
  StrandWait* wait() { return &wait_; }
  // Makes the parts on `device`, without chunks. `host` outlives them.
  // `overlaps_steps`: see EngineParts.
  void Open(std::unique_ptr<RankDevice> device, EngineHost* host,
            bool overlaps_steps = false);
  // Adds the next chunk, or the parameters of a loop's model, which has none.
  void Add(std::unique_ptr<Chunk> chunk);
  void Add(std::unique_ptr<ChunkParameters> model);
  // Registers the memory of all chunks that is reduced, until the end of this
  // object (RankDevice::UseRanges).
  void RegisterRanges();

  const EngineParts& operator*() const { return *parts_; }
  const EngineParts* operator->() const { return &*parts_; }
  Inbox& inbox() { return *inbox_; }
  StepTrace& trace() { return trace_; }  // trace of the present step

 private:
  void Watch(ChunkParameters* parameters);

  const EngineSetup& setup_;
  StepPosition own_position_;
  QuietWait wait_;
  StepTrace trace_;
  std::unique_ptr<RankDevice> device_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::unique_ptr<ChunkParameters> model_;    // null with chunks
  std::vector<ChunkParameters*> parameters_;  // indexed by chunk
  std::optional<BucketEvents> events_;
  std::optional<Reducer> reducer_;
  PredictedOutputs outputs_;
  std::optional<EngineParts> parts_;
  std::optional<Inbox> inbox_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_OWNED_PARTS_H_

#include "actors/engine/engine_inputs.h"

#include <algorithm>

#include "pipeline/table/activation_bound.h"
#include "pipeline/table/compute_order.h"

namespace troupe::actors {
namespace {

// Returns whether layers of the rank communicate. Its actions must then run in
// the same order as those of its peers.
bool LayersCommunicate(const pipeline::Plan& plan, int rank) {
  const std::vector<int> stages = plan.StagesOf(rank);
  return std::any_of(stages.begin(), stages.end(), [&](int stage) {
    return !plan.stages[stage].layer_axes.empty();
  });
}

}  // namespace

pipeline::StepTable BoundedTable(pipeline::StepTable table,
                                 const pipeline::Plan& plan, int rank) {
  if (plan.dispatch == pipeline::Dispatch::kStrict ||
      LayersCommunicate(plan, rank) || plan.gathers_values()) {
    pipeline::KeepComputeOrder(table);
  } else {
    pipeline::BoundActivations(table);
  }
  return table;
}

std::vector<int> BucketsOf(const pipeline::Plan& plan, int rank) {
  std::vector<int> buckets;
  for (int stage : plan.StagesOf(rank)) {
    buckets.push_back(static_cast<int>(plan.stages[stage].buckets.size()));
  }
  return buckets;
}

Chunk::Setup ChunkSetupOf(const EngineParts& parts, int stage, int chunk) {
  const EngineSetup& setup = parts.setup;
  Chunk::Setup made;
  made.spec = setup.spec;
  made.plan = setup.plan;
  made.stage = stage;
  made.chunk = chunk;
  made.rank = setup.rank;
  made.kernels = parts.device.shared_kernels();
  made.axes = parts.device.axes();
  made.start_threads = setup.start_threads;
  made.peer_memory = setup.peer_memory;
  made.update_queue = parts.events.update_queue();
  return made;
}

}  // namespace troupe::actors

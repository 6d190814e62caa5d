#include "actors/engine/step_runner.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/chunks/memory_holders.h"
#include "actors/engine/actions/actions.h"
#include "actors/engine/engine_inputs.h"
#include "actors/engine/share_state.h"
#include "actors/engine/snapshot.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "pipeline/table/action_rules.h"

namespace troupe::actors {
namespace {

// Returns the rank's table for training, with the needs that bound its order.
pipeline::StepTable TrainTableOf(const EngineSetup& setup) {
  pipeline::StepTable table = setup.train_table;
  return BoundedTable(std::move(table), *setup.plan, setup.rank);
}

// Returns whether steps overlap. Six cases have nothing to overlap: with inline
// reductions none is under way when a step ends; an update that needs all
// buckets would delay the whole next forward; an update within the reduction
// ends with it; a device with queues orders updates and forward in its queues;
// gathers before uses need the updates; slices of gradients are kept before the
// next step begins.
bool OverlapsSteps(const EngineSetup& setup, const RankDevice& device) {
  const pipeline::Plan& plan = *setup.plan;
  const auto& actions = setup.train_table.actions;
  return plan.cross_step && !plan.update_needs_all_buckets &&
         !plan.SlicesGradients() && !plan.gathers_values() &&
         !plan.RankPlanOf(setup.rank).reduce_inline && !device.has_queues() &&
         std::none_of(actions.begin(), actions.end(), [](const auto& action) {
           return pipeline::ReducesBucket(action.kind) &&
                  pipeline::RuleOf(action.kind).Has(pipeline::kMakesParameters);
         });
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepRunner>> StepRunner::Create(
    const Setup& setup, Host* host, StrandWait* wait) {
  std::unique_ptr<StepRunner> runner(new StepRunner(setup, wait));
  TROUPE_RETURN_IF_ERROR(runner->Init(host));
  return runner;
}

StepRunner::StepRunner(const Setup& setup, StrandWait* wait)
    : setup_(setup),
      parts_(setup_, wait,
             StepTrace(setup.spec->trace, setup.rank,
                       setup.plan->StagesOf(setup.rank),
                       setup.plan->mesh.CoordsOf(setup.rank).dp)) {}

absl::Status StepRunner::Init(Host* host) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<RankDevice> device,
                          RankDevice::Open({setup_.spec, setup_.local_rank,
                                            setup_.groups, parts_.wait()}));
  const bool overlaps_steps = OverlapsSteps(setup_, *device);
  parts_.Open(std::move(device), host, overlaps_steps);
  TROUPE_RETURN_IF_ERROR(MakeLosses());
  const pipeline::Plan& plan = *setup_.plan;
  dispatcher_.emplace(Dispatcher::Options{TrainTableOf(setup_),
                                          plan.RankPlanOf(setup_.rank).evaluate,
                                          BucketsOf(plan, setup_.rank)},
                      *parts_, MakeActions(*parts_), parts_.inbox(), *losses_,
                      parts_.trace());
  TROUPE_RETURN_IF_ERROR(MakeChunks());
  if (RecordsSteps(*parts_, *dispatcher_)) {
    recorder_.emplace(*parts_, *dispatcher_, parts_.trace());
  }
  return absl::OkStatus();
}

absl::Status StepRunner::MakeLosses() {
  const pipeline::Plan& plan = *setup_.plan;
  const nn::Queue queue = parts_->device.update_queue();
  if (plan.dynamic_loss_scale.has_value()) {
    TROUPE_CHECK(plan.update_needs_all_buckets,
                 "a dynamic loss scale needs what all gradients are like");
    TROUPE_ASSIGN_OR_RETURN(
        scaler_,
        LossScaler::Create(kernels(),
                           {plan.loss_scale, *plan.dynamic_loss_scale, queue}));
  } else {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Optimizer> optimizer,
                            MakeOptimizer(*setup_.spec));
    if (optimizer->MaySkipSteps()) {
      TROUPE_ASSIGN_OR_RETURN(
          scaler_,
          LossScaler::Create(
              kernels(), {plan.loss_scale, nn::LossScaleRule::Fixed(), queue}));
    }
  }
  TROUPE_ASSIGN_OR_RETURN(
      StepLosses losses,
      StepLosses::Create(kernels(),
                         {setup_.spec->stop_on_nan, plan.loss_scale, queue,
                          scaler_.get(), setup_.spec->loss_reduction},
                         parts_->overlaps_steps));
  losses_.emplace(std::move(losses));
  return absl::OkStatus();
}

absl::Status StepRunner::MakeChunks() {
  const pipeline::Plan& plan = *setup_.plan;
  for (int stage : plan.StagesOf(setup_.rank)) {
    Chunk::Setup chunk = ChunkSetupOf(*parts_, stage, chunk_count());
    chunk.trace = &parts_.trace();
    chunk.scalars = losses_->first().scalars();
    if (plan.dynamic_loss_scale) chunk.loss_seed = scaler_->seed();
    chunk.gated =
        parts_->overlaps_steps || chunk.update_queue != nn::Queue::kCompute;
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Chunk> made,
                            Chunk::Create(chunk, dispatcher_->listener()));
    parts_.Add(std::move(made));
  }
  parts_.RegisterRanges();
  return absl::OkStatus();
}

absl::Status StepRunner::RunStep(StepKind kind, std::int64_t step,
                                 StepBatches batches) {
  const absl::Status status =
      recorder_ && kind == StepKind::kTrain
          ? recorder_->RunStep(step, std::move(batches))
          : dispatcher_->RunStep(kind, step, std::move(batches));
  return absl::IsResourceExhausted(status) ? WithHolders(status) : status;
}

absl::Status StepRunner::WithHolders(const absl::Status& exhausted) const {
  std::size_t in_use = parts_->kernels().allocator().stats().bytes_in_use;
  for (const ChunkParameters* parameters : parts_->parameters) {
    in_use += parameters->exchanged_value_bytes();
  }
  MemoryHolders holders(in_use);
  for (const auto& chunk : parts_->chunks) chunk->AddTo(holders);
  return absl::ResourceExhaustedError(absl::StrCat(
      exhausted.message(), ". The rank's memory: ", holders.ToString(),
      "; make micro-batches smaller, or recompute modules in backward"));
}

absl::Status StepRunner::ShareState(StepKind kind, std::int64_t step) {
  TROUPE_RETURN_IF_ERROR(FinishTail());
  return actors::ShareState(*parts_, kind, step);
}

absl::StatusOr<PendingSnapshot> StepRunner::MakeSnapshot(
    std::int64_t step, const SnapshotParts& made) {
  TROUPE_CHECK(!dispatcher_->has_earlier(), "a snapshot is of whole steps");
  absl::StatusOr<PendingSnapshot> snapshot =
      SnapshotOf(*parts_, scaler_.get(), step, made);
  ReleaseValues();
  return snapshot;
}

absl::Status StepRunner::Restore(const Checkpoint& checkpoint) {
  for (ChunkParameters* parameters : parts_->parameters) {
    parameters->HoldAllValues();
  }
  TROUPE_RETURN_IF_ERROR(RestoreFrom(checkpoint, *parts_, scaler_.get()));
  ReleaseValues();
  return absl::OkStatus();
}

std::uint64_t StepRunner::peak_bytes() {
  std::uint64_t peak = kernels().allocator().stats().bytes_in_use_peak;
  for (const ChunkParameters* parameters : parts_->parameters) {
    peak += parameters->exchanged_value_bytes();
    peak -= parameters->never_held_bytes();
  }
  return peak;
}

void StepRunner::ReleaseValues() {
  for (ChunkParameters* parameters : parts_->parameters) {
    parameters->ReleaseAllValues();
  }
}

}  // namespace troupe::actors

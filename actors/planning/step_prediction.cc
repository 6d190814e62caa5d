#include "actors/planning/step_prediction.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "base/cpu_cores.h"
#include "pipeline/balance.h"

namespace troupe::actors {
namespace {

absl::StatusOr<pipeline::Plan> PlanOf(const JobSpec& spec) {
  pipeline::PlanOptions options = spec.plan;
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Optimizer> optimizer,
                          MakeOptimizer(spec));
  options.reductions.update_needs_all_buckets = optimizer->NeedsAllBuckets();
  return MakeJobPlan(spec, options);
}

absl::StatusOr<pipeline::StepCosts> CostsOf(
    const JobSpec& spec, const pipeline::Plan& plan,
    const pipeline::ModelCosts* measured) {
  if (measured != nullptr) {
    return pipeline::CostsOfStages(*measured, plan.cuts);
  }
  const pipeline::StagePlan& first = plan.stages[0];
  return pipeline::EstimateCosts(spec.model, plan.cuts,
                                 {first.input, first.input_dtype}, plan.device,
                                 pipeline::PlacesOf(plan.mesh, /*rank=*/0));
}

// Returns the bytes of each bucket of a stage, as they are reduced.
std::vector<double> BucketBytes(const pipeline::Plan& plan,
                                const pipeline::StagePlan& stage) {
  std::vector<double> bytes;
  for (const std::vector<int>& bucket : stage.buckets) {
    double sum = 0;
    for (const int i : bucket) {
      const nn::DType dtype = plan.reduction_dtype.value_or(
          plan.grad_dtype.value_or(stage.parameter_dtypes[i]));
      sum += static_cast<double>(stage.parameter_elems[i]) *
             static_cast<double>(nn::SizeOf(dtype));
    }
    bytes.push_back(sum);
  }
  return bytes;
}

// Sets the costs of the stages' reductions and updates, and the bytes that
// ranks send. A reduce-scatter and a gather send as many as an all-reduce.
void AddReductions(const ReductionCosts* reductions, StepPrediction& step) {
  const int dp = step.plan.mesh.dp();
  std::vector<double> sent(step.plan.mesh.pp(), 0);
  for (std::size_t i = 0; i < step.plan.stages.size(); ++i) {
    const pipeline::StagePlan& stage = step.plan.stages[i];
    // Owners of the optimizer's states update a slice each.
    step.costs.stages[i].update /= step.plan.owners();
    for (const double bytes : BucketBytes(step.plan, stage)) {
      sent[stage.place.pp] += BytesSent(bytes, dp);
      if (reductions == nullptr || dp == 1) continue;
      step.costs.stages[i].reductions.push_back(
          reductions->SecondsOf(bytes, dp));
    }
  }
  step.bytes_sent = *std::max_element(sent.begin(), sent.end());
}

// Returns the time in which the cores of this machine do the work of all ranks
// in a step; 0 if every rank has its cores, or they are unknown.
double SecondsOfCores(const JobSpec& spec, const StepPrediction& step) {
  if (!spec.device.is_host() || spec.cluster) return 0;
  const double ranks = step.plan.mesh.size();
  const double cores =
      static_cast<double>(base::AvailableCores()) / spec.plan.threads_per_rank;
  // The ranks of a pipeline share a replica's work; each copy of it does all.
  return cores < ranks ? step.work * (ranks / step.plan.mesh.pp()) / cores : 0;
}

}  // namespace

absl::StatusOr<StepPrediction> PredictStep(const JobSpec& spec,
                                           const pipeline::ModelCosts* measured,
                                           const ReductionCosts* reductions) {
  StepPrediction step;
  TROUPE_ASSIGN_OR_RETURN(step.plan, PlanOf(spec));
  TROUPE_ASSIGN_OR_RETURN(step.costs, CostsOf(spec, step.plan, measured));
  step.costs.last_micro_batch = step.plan.last_micro_batch_part();
  AddReductions(reductions, step);
  std::vector<pipeline::StepTable> tables;
  for (const pipeline::RankPlan& rank : step.plan.ranks) {
    tables.push_back(rank.train);
  }
  TROUPE_ASSIGN_OR_RETURN(
      step.steady, pipeline::SimulateSteps(tables, step.plan.placement(),
                                           step.costs, step.plan.dispatch));
  for (const pipeline::StageCosts& stage : step.costs.stages) {
    step.work +=
        (step.plan.micro_batches - 1 + step.costs.last_micro_batch) *
            (stage.forward + stage.TimeOf(pipeline::ActionKind::kBackward)) +
        stage.update;
  }
  step.seconds = step.steady.seconds;
  if (measured != nullptr) {
    step.seconds = std::max(step.seconds, SecondsOfCores(spec, step));
  }
  TROUPE_ASSIGN_OR_RETURN(step.memory, ExpectMemoryOfRanks(spec, step.plan));
  for (std::size_t pp = 0; pp < step.memory.size(); ++pp) {
    step.memory[pp].activations = step.steady.step.ranks[pp].memory_max;
  }
  return step;
}

}  // namespace troupe::actors

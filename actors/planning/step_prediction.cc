#include "actors/planning/step_prediction.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "actors/spec/optimizer_states.h"
#include "base/check.h"
#include "base/cpu_cores.h"
#include "pipeline/balance.h"
#include "pipeline/ties.h"

namespace troupe::actors {
namespace {

absl::StatusOr<pipeline::Plan> PlanOf(const JobSpec& spec) {
  pipeline::PlanOptions options = spec.plan;
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Optimizer> optimizer,
                          MakeOptimizer(spec));
  SetNeedsOfUpdates(*optimizer, options.reductions);
  return MakeJobPlan(spec, options);
}

absl::StatusOr<pipeline::StepCosts> CostsOf(
    const JobSpec& spec, const pipeline::Plan& plan,
    const pipeline::ModelCosts* measured) {
  if (measured != nullptr) {
    return pipeline::CostsOfStages(*measured, plan.cuts);
  }
  const pipeline::StagePlan& first = plan.stages[0];
  return pipeline::EstimateCosts(
      spec.model, plan.cuts, {first.input, first.input_dtype}, plan.device,
      pipeline::PlacesOf(plan.mesh, /*rank=*/0, plan.sequence_parallel,
                         plan.depth_blocks));
}

struct BucketBytes {
  double gradients = 0;  // bytes that are reduced in a round
  double values = 0;
  int rounds = 1;
};

// Returns the bytes of each bucket of a stage. One that stages share is reduced
// once, even if others are for each micro-batch.
std::vector<BucketBytes> BytesOfBuckets(const pipeline::Plan& plan,
                                        int number) {
  const pipeline::StagePlan& stage = plan.stages[number];
  const std::size_t first_tied =
      stage.buckets.size() - pipeline::TiedBuckets(plan.stages, {number})[0];
  std::vector<BucketBytes> all;
  for (const std::vector<int>& bucket : stage.buckets) {
    const bool each = plan.ReducesEachMicroBatch() && all.size() < first_tied;
    BucketBytes& bytes = all.emplace_back();
    if (each) bytes.rounds = plan.micro_batches;
    for (const int i : bucket) {
      const nn::DType dtype = stage.parameter_dtypes[i];
      const nn::DType reduced =
          plan.reduction_dtype.value_or(plan.grad_dtype.value_or(dtype));
      const auto elems = static_cast<double>(stage.parameter_elems[i]);
      bytes.gradients += elems * static_cast<double>(nn::SizeOf(reduced));
      bytes.values += elems * static_cast<double>(nn::SizeOf(dtype));
    }
  }
  return all;
}

// Returns the costs with the times of sums of layers over tp.
pipeline::ModelCosts WithSums(const pipeline::ModelCosts& measured,
                              const ReductionCosts& reductions, int tp) {
  const auto seconds = [&](const pipeline::LayerSums& sums) {
    return sums.count == 0
               ? 0
               : sums.count * reductions.SecondsOf(sums.bytes / sums.count, tp);
  };
  pipeline::ModelCosts costs = measured;
  for (pipeline::UnitCosts& unit : costs.units) {
    unit.costs.forward_sums = seconds(unit.forward_sums);
    unit.costs.backward_sums = seconds(unit.backward_sums);
  }
  return costs;
}

// Returns the bytes that a rank of each coordinate along pp sends in a step's
// sums of layers over tp.
std::vector<double> SentInSums(const pipeline::Plan& plan,
                               const pipeline::ModelCosts* measured) {
  std::vector<double> sent(plan.mesh.pp(), 0);
  if (measured == nullptr) return sent;
  // Bytes take the place of seconds, so that stages add them up.
  const ReductionCosts bytes = {/*latency=*/0, /*bytes_per_second=*/1};
  const pipeline::StepCosts stages = pipeline::CostsOfStages(
      WithSums(*measured, bytes, plan.mesh.tp()), plan.cuts);
  const double micro_batches =
      plan.micro_batches - 1 + plan.last_micro_batch_part();
  for (std::size_t i = 0; i < stages.stages.size(); ++i) {
    const pipeline::StageCosts& stage = stages.stages[i];
    sent[plan.stages[i].place.pp] +=
        micro_batches * (stage.forward_sums + stage.backward_sums);
  }
  return sent;
}

// Returns how often a step gathers the values of bucket `k` of a stage.
double GathersOf(const pipeline::Plan& plan, const pipeline::StagePlan& stage,
                 int k) {
  const auto& actions = plan.ranks[stage.place.pp].train.actions;
  return static_cast<double>(
      std::count_if(actions.begin(), actions.end(), [&](const auto& action) {
        return (action.kind == pipeline::ActionKind::kGatherBucket ||
                action.kind == pipeline::ActionKind::kGatherValues) &&
               action.index == k && action.chunk == stage.place.chunk;
      }));
}

// Sets the costs of the stages' reductions and updates, and the bytes that
// ranks send: `sent`, and those of reductions. A reduce-scatter and a gather
// together send as many as an all-reduce. There may be one of each micro-batch,
// and a gather before each use.
void AddReductions(const ReductionCosts* reductions, std::vector<double> sent,
                   StepPrediction& step) {
  const int dp = step.plan.mesh.dp();
  const bool has_owners = step.plan.owners() > 1;
  for (std::size_t i = 0; i < step.plan.stages.size(); ++i) {
    const pipeline::StagePlan& stage = step.plan.stages[i];
    pipeline::StageCosts& costs = step.costs.stages[i];
    // Owners of the optimizer's states update a slice each.
    costs.update /= step.plan.owners();
    int k = 0;
    for (const BucketBytes& bytes :
         BytesOfBuckets(step.plan, static_cast<int>(i))) {
      if (!has_owners) {
        sent[stage.place.pp] += BytesSent(bytes.gradients, dp);
      } else {
        sent[stage.place.pp] +=
            bytes.rounds * BytesSent(bytes.gradients / 2, dp) +
            GathersOf(step.plan, stage, k++) * BytesSent(bytes.values / 2, dp);
      }
      if (reductions == nullptr || dp == 1) continue;
      if (!has_owners) {
        costs.reductions.push_back(reductions->SecondsOf(bytes.gradients, dp));
        continue;
      }
      costs.reductions.push_back(
          reductions->HalfSecondsOf(bytes.gradients, dp));
      costs.gathers.push_back(reductions->HalfSecondsOf(bytes.values, dp));
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
  std::optional<pipeline::ModelCosts> with_sums;
  if (measured != nullptr && reductions != nullptr) {
    with_sums = WithSums(*measured, *reductions, step.plan.mesh.tp());
  }
  TROUPE_ASSIGN_OR_RETURN(
      step.costs, CostsOf(spec, step.plan, with_sums ? &*with_sums : measured));
  step.costs.last_micro_batch = step.plan.last_micro_batch_part();
  AddReductions(reductions, SentInSums(step.plan, measured), step);
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

// Checks that the parts of a plan, and model and mesh, fit together.

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/kernels/choice_cache.h"
#include "pipeline/plan.h"
#include "pipeline/stage_buckets.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/table_index.h"
#include "pipeline/ties.h"

namespace troupe::pipeline {
namespace {

absl::Status Bad(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("plan: ", field, " ", what));
}

absl::Status In(absl::string_view field, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("plan: ", field, ": ", status.message()));
}

absl::Status CheckBatches(const Plan& plan) {
  TROUPE_RETURN_IF_ERROR(In("mesh", plan.mesh.Check()));
  if (plan.global_batch_size < 1) return Bad("global_batch_size", "is below 1");
  if (plan.micro_batch_size < 1) return Bad("micro_batch_size", "is below 1");
  if (plan.micro_batches < 1) return Bad("micro_batches", "is below 1");
  if (plan.threads_per_rank < 1) return Bad("threads_per_rank", "is below 1");
  const std::int64_t share =
      LargestShare(plan.global_batch_size, plan.mesh.dp());
  if (plan.global_batch_size < plan.mesh.dp() ||
      (share - 1) / plan.micro_batch_size + 1 != plan.micro_batches ||
      plan.micro_batch_size > share) {
    return Bad(
        "global_batch_size",
        "is not dp x micro_batches x micro_batch_size, of which the last "
        "micro-batch may be smaller");
  }
  return absl::OkStatus();
}

// Checks that each parameter is in one bucket, or frozen.
absl::Status CheckBuckets(const std::string& field, const StagePlan& stage) {
  std::vector<char> seen(stage.parameters.size());
  const auto take = [&](const std::string& list, const std::vector<int>& from) {
    for (int i : from) {
      if (i < 0 || i >= static_cast<int>(seen.size())) {
        return Bad(absl::StrCat(field, ".", list),
                   absl::StrCat("has parameter ", i, " of ", seen.size()));
      }
      if (seen[i]++) {
        return Bad(absl::StrCat(field, ".", list),
                   absl::StrCat("has parameter ", i, " a second time"));
      }
    }
    return absl::OkStatus();
  };
  for (std::size_t k = 0; k < stage.buckets.size(); ++k) {
    const std::string name = absl::StrCat("buckets[", k, "]");
    if (stage.buckets[k].empty()) {
      return Bad(absl::StrCat(field, ".", name), "is empty");
    }
    TROUPE_RETURN_IF_ERROR(take(name, stage.buckets[k]));
  }
  TROUPE_RETURN_IF_ERROR(take("frozen", stage.frozen));
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) {
      return Bad(field, absl::StrCat("has parameter ", i, " in no bucket"));
    }
  }
  return absl::OkStatus();
}

// BuildStage() finds cuts that are not in the model or do not ascend.
absl::Status CheckCuts(const std::vector<std::string>& cuts) {
  std::set<absl::string_view> seen;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const std::string field = absl::StrCat("cuts[", i, "]");
    if (cuts[i].empty()) return Bad(field, "is empty");
    if (!seen.insert(cuts[i]).second) return Bad(field, "is there twice");
  }
  return absl::OkStatus();
}

// Checks the skip connections that stage `number` receives. `last_at`: the last
// stage before it that receives each name.
absl::Status CheckSkipNames(const Plan& plan, std::size_t number,
                            std::map<std::string, std::size_t>& last_at) {
  const StagePlan& stage = plan.stages[number];
  const std::string field = absl::StrCat("stages[", number, "].skips");
  if (number == 0 && stage.received_tensors() > 1) {
    return Bad(field, "or more_inputs are there, before any stage");
  }
  if (stage.received_tensors() > kStageTensorsMax) {
    return Bad(field,
               absl::StrCat("and inputs are more than ", kStageTensorsMax));
  }
  for (const SkipPlan& skip : stage.skips) {
    if (skip.name.empty()) return Bad(field, "has one without a name");
    const auto [last, is_new] = last_at.try_emplace(skip.name, number);
    if (is_new) continue;
    if (last->second == number) {
      return Bad(field, absl::StrCat("has \"", skip.name, "\" twice"));
    }
    if (last->second + 1 != number) {
      return Bad(field, absl::StrCat("has \"", skip.name,
                                     "\", which a stage before has popped"));
    }
    last->second = number;
  }
  return absl::OkStatus();
}

// Checks that the skip connections which a stage passes on come first among
// those of the next stage, in the same order and with the same shapes.
absl::Status CheckPassedOn(const Plan& plan, std::size_t number) {
  const std::vector<SkipPlan>& skips = plan.stages[number].skips;
  const std::string field = absl::StrCat("stages[", number, "].skips");
  std::set<absl::string_view> before;
  for (const SkipPlan& skip : plan.stages[number - 1].skips) {
    before.insert(skip.name);
  }
  std::size_t at = 0;
  for (const SkipPlan& skip : plan.stages[number - 1].skips) {
    if (at == skips.size() || skips[at].name != skip.name) continue;
    if (skips[at].spec == skip.spec) {
      ++at;
      continue;
    }
    return Bad(field,
               absl::StrCat("has \"", skip.name,
                            "\" of another shape than the stage before"));
  }
  for (; at < skips.size(); ++at) {
    if (before.count(skips[at].name) == 0) continue;
    return Bad(field,
               absl::StrCat("has \"", skips[at].name,
                            "\" in another order than the stage before"));
  }
  return absl::OkStatus();
}

absl::Status CheckSkips(const Plan& plan) {
  std::map<std::string, std::size_t> last_at;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(CheckSkipNames(plan, i, last_at));
    if (i > 0) TROUPE_RETURN_IF_ERROR(CheckPassedOn(plan, i));
  }
  return absl::OkStatus();
}

absl::Status CheckStage(const Plan& plan, std::size_t number) {
  const StagePlan& stage = plan.stages[number];
  const std::string field = absl::StrCat("stages[", number, "]");
  if (stage.input_dtype !=
      (number == 0 ? plan.dtype : plan.stages[number - 1].output_dtype)) {
    return Bad(absl::StrCat(field, ".input_dtype"),
               "is not that of the plan or the stage before");
  }
  if (number > 0 && !(stage.input == plan.stages[number - 1].output)) {
    return Bad(absl::StrCat(field, ".input"),
               "is not the output of the stage before");
  }
  if (!std::isfinite(stage.flops) || stage.flops < 0) {
    return Bad(absl::StrCat(field, ".flops"), "is not a number from 0 on");
  }
  if (stage.parameters.size() != stage.parameter_elems.size() ||
      stage.parameters.size() != stage.parameter_dtypes.size()) {
    return Bad(absl::StrCat(field, ".parameter_elems"),
               "has another size than parameters");
  }
  if (stage.shares_buffers && plan.mesh.dp() == 1) {
    return Bad(absl::StrCat(field, ".shares_buffers"),
               "is set, but there is one replica");
  }
  std::set<absl::string_view> names;
  for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
    const std::string name = absl::StrCat(field, ".parameters[", i, "]");
    if (stage.parameter_elems[i] < 0) return Bad(name, "has a size below 0");
    if (!names.insert(stage.parameters[i]).second) {
      return Bad(name, "has the name of another one");
    }
  }
  TROUPE_RETURN_IF_ERROR(CheckBuckets(field, stage));
  return CheckSplits(field, stage, plan.mesh.tp());
}

// The chunks of a table pass on what their neighbours expect.
absl::Status CheckTransfers(const std::vector<ChunkEnds>& ends,
                            const StepTable& table) {
  const TableIndex index(table);
  for (const Action& action : table.actions) {
    if (action.kind != ActionKind::kForward) continue;
    const ChunkEnds& chunk = ends[action.chunk];
    for (const auto& [kind, wanted] :
         {std::pair(ActionKind::kRecvActivation, !chunk.first_stage),
          std::pair(ActionKind::kSendGradient, !chunk.first_stage),
          std::pair(ActionKind::kSendActivation, !chunk.last_stage),
          std::pair(ActionKind::kRecvGradient, !chunk.last_stage)}) {
      if (index.Has(kind, action.index, action.chunk) == wanted) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          Action{kind, action.index, {}, action.chunk}.ToString(
              static_cast<int>(ends.size())),
          wanted ? " is missing" : " has no stage at its other end"));
    }
  }
  return absl::OkStatus();
}

// The buckets that other stages share, the last `tied` of each chunk, are
// summed over them, and no others.
absl::Status CheckTied(const std::vector<int>& buckets,
                       const std::vector<int>& tied, const StepTable& table) {
  const TableIndex index(table);
  for (int chunk = 0; chunk < static_cast<int>(buckets.size()); ++chunk) {
    for (int k = 0; k < buckets[chunk]; ++k) {
      const bool wanted = k >= buckets[chunk] - tied[chunk];
      if (index.Has(ActionKind::kReduceTied, k, chunk) == wanted) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          Action{ActionKind::kReduceTied, k, {}, chunk}.ToString(
              static_cast<int>(buckets.size())),
          wanted ? " is missing" : " is of a bucket that no other stage has"));
    }
  }
  return absl::OkStatus();
}

// All buckets of the plan are reduced in the same number of rounds, and in
// several only by a hook, or for each micro-batch. Those that stages share are
// then reduced once.
absl::Status CheckRounds(const Plan& plan, const StepTable& table) {
  const bool each = plan.ReducesEachMicroBatch();
  if (plan.rounds() > 1 && plan.hook.empty() && !each) {
    return absl::InvalidArgumentError(
        absl::StrCat("has reductions of ", plan.rounds(),
                     " rounds, but the plan has no hook"));
  }
  const TableIndex index(table);
  for (const Action& action : table.actions) {
    if (action.kind != ActionKind::kReduceBucket) continue;
    const bool once =
        each && index.Has(ActionKind::kReduceTied, action.index, action.chunk);
    const int rounds = once ? 1 : each ? plan.micro_batches : plan.rounds();
    const bool last = action.round == rounds - 1;
    if (action.round < rounds && IsLastRound(action, index) == last) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("has another number of rounds than ", rounds, " for ",
                     PartOf(action, table.chunks())));
  }
  return absl::OkStatus();
}

// Checks that values are gathered before their uses, or where replicas update
// slices, as the plan says. `buckets`: number of those of each chunk.
absl::Status CheckGathers(const Plan& plan, const StepTable& table,
                          const std::vector<int>& buckets) {
  const TableIndex index(table);
  const auto wrong = [&](absl::string_view has, const Action& action,
                         absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", has, action.ToString(table.chunks()), what));
  };
  const bool behind_updates = plan.owners() > 1 && !plan.gathers_values();
  for (const Action& action : table.actions) {
    const bool gathers = action.kind == ActionKind::kGatherBucket;
    if (action.kind == ActionKind::kGatherValues && !plan.gathers_values()) {
      return wrong("", action, ", but values stay whole; leave it out");
    }
    if (gathers && !behind_updates) {
      return wrong("", action, ", but updates need no gather; leave it out");
    }
    if (behind_updates && !gathers &&
        RuleOf(action.kind).Has(kMakesParameters) &&
        !index.Has(ActionKind::kGatherBucket, action.index, action.chunk)) {
      return wrong("no AG after ", action,
                   ", which updates a slice of the bucket; add it");
    }
  }
  if (!plan.gathers_values()) return absl::OkStatus();
  for (int chunk = 0; chunk < static_cast<int>(buckets.size()); ++chunk) {
    for (int k = 0; k < buckets[chunk]; ++k) {
      if (index.Has(ActionKind::kGatherValues, k, chunk)) continue;
      return wrong("no ", {ActionKind::kGatherValues, k, {}, chunk},
                   ", but replicas have slices of the bucket's values; add it");
    }
  }
  return absl::OkStatus();
}

// Checks that each chunk has the actions of all its buckets; in an evaluation
// it may have none.
absl::Status CheckBucketCounts(const StepTable& table,
                               const std::vector<int>& buckets, bool trains) {
  const std::vector<int> counts = table.bucket_counts();
  for (std::size_t chunk = 0; chunk < counts.size(); ++chunk) {
    const bool none = !trains && counts[chunk] == 0;
    if (none || counts[chunk] == buckets[chunk]) continue;
    return absl::InvalidArgumentError("has other buckets than its stages");
  }
  return absl::OkStatus();
}

absl::Status CheckTable(const Plan& plan, int pp, const StepTable& table,
                        bool trains, const std::vector<int>& buckets) {
  TROUPE_RETURN_IF_ERROR(Validate(table));
  const int chunks = static_cast<int>(buckets.size());
  if (table.chunks() != chunks) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", table.chunks(), " chunk(s), its ranks ", chunks));
  }
  const int micro_batches = trains ? plan.micro_batches : 1;
  if (table.micro_batches() != micro_batches) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", table.micro_batches(), " micro-batches, not ", micro_batches));
  }
  TROUPE_RETURN_IF_ERROR(CheckBucketCounts(table, buckets, trains));
  ReductionOptions options;
  options.update_needs_all_buckets = plan.update_needs_all_buckets;
  options.each_micro_batch = plan.ReducesEachMicroBatch();
  if (!(WithNeeds(table, options) == table)) {
    return absl::InvalidArgumentError("has needs that its text does not say");
  }
  TROUPE_RETURN_IF_ERROR(CheckRounds(plan, table));
  TROUPE_RETURN_IF_ERROR(CheckGathers(plan, table, buckets));
  return CheckTransfers(EndsAt(plan.placement(), pp), table);
}

absl::Status CheckRank(const Plan& plan, int pp) {
  const RankPlan& rank = plan.ranks[pp];
  const std::string field = absl::StrCat("ranks[", pp, "]");
  const std::vector<int> stages = StagesAt(plan.placement(), pp);
  const std::vector<int> tied = TiedBuckets(plan.stages, stages);
  std::vector<int> buckets;
  for (int stage : stages) {
    buckets.push_back(static_cast<int>(plan.stages[stage].buckets.size()));
  }
  if (rank.reduce_inline && plan.stages.size() > 1) {
    return Bad(absl::StrCat(field, ".reduce_inline"),
               "is for whole replicas only");
  }
  TROUPE_RETURN_IF_ERROR(
      In(absl::StrCat(field, ".train"),
         CheckTable(plan, pp, rank.train, /*trains=*/true, buckets)));
  TROUPE_RETURN_IF_ERROR(
      In(absl::StrCat(field, ".train"), CheckTied(buckets, tied, rank.train)));
  return In(absl::StrCat(field, ".evaluate"),
            CheckTable(plan, pp, rank.evaluate, /*trains=*/false, buckets));
}

absl::Status CheckAlgorithms(const nn::ChoicesByDevice& algorithms) {
  for (const auto& [device, choices] : algorithms) {
    if (!nn::ChoiceCache::IsContext(device)) {
      return Bad("algorithms", "has a device that is no line of text");
    }
    for (const auto& [key, choice] : choices) {
      if (nn::ChoiceCache::IsKey(key) && nn::ChoiceCache::IsChoice(choice)) {
        continue;
      }
      return Bad("algorithms", absl::StrCat("has a choice for ", device,
                                            " that is not two words"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Plan::Check() const {
  TROUPE_RETURN_IF_ERROR(CheckBatches(*this));
  if (static_cast<int>(ranks.size()) != mesh.pp()) {
    return Bad("ranks", absl::StrCat("has ", ranks.size(), " entries, pp is ",
                                     mesh.pp()));
  }
  TROUPE_RETURN_IF_ERROR(In("stages", CheckPlacement(placement(), mesh.pp())));
  if (!nn::IsFloating(data_dtype)) {
    return Bad("data_dtype", "is no floating type");
  }
  if (reduction_dtype && !nn::IsFloating(*reduction_dtype)) {
    return Bad("reduction_dtype", "is no floating type");
  }
  if (!std::isfinite(loss_scale) || loss_scale <= 0) {
    return Bad("loss_scale", "is not a number above 0");
  }
  if (dynamic_loss_scale && (dynamic_loss_scale->growth_interval < 1 ||
                             !(dynamic_loss_scale->min > 0) ||
                             dynamic_loss_scale->min > loss_scale)) {
    return Bad("loss_scale_min", "is not above 0 and at most loss_scale");
  }
  if (dynamic_loss_scale && !update_needs_all_buckets) {
    return Bad("loss_scale_growth_interval",
               "is set, but updates do not wait for all buckets");
  }
  if (reduction_order != kTreeReduction && reduction_order != kAnyReduction) {
    return Bad("reduction_order", "is neither \"tree\" nor \"any\"");
  }
  if (cuts.size() + 1 != stages.size()) {
    return Bad("cuts", absl::StrCat("has ", cuts.size(), " entries for ",
                                    stages.size(), " stages"));
  }
  TROUPE_RETURN_IF_ERROR(CheckCuts(cuts));
  TROUPE_RETURN_IF_ERROR(CheckAlgorithms(algorithms));
  for (std::size_t i = 0; i < stages.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(CheckStage(*this, i));
  }
  TROUPE_RETURN_IF_ERROR(CheckSkips(*this));
  TROUPE_RETURN_IF_ERROR(CheckTies(stages));
  for (int pp = 0; pp < mesh.pp(); ++pp) {
    TROUPE_RETURN_IF_ERROR(CheckRank(*this, pp));
  }
  return absl::OkStatus();
}

}  // namespace troupe::pipeline

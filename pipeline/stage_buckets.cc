#include "pipeline/stage_buckets.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "nn/modules/sequential.h"
#include "pipeline/bucket_limits.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/add_gathers.h"

namespace troupe::pipeline {
namespace {

// Parameters with gradients, by dtype, and whether they are split, or their
// gradients in parts: a bucket has one kind.
struct Trained {
  struct OfOneType {
    nn::DType dtype;
    bool split, partial;
    std::vector<int> numbers;
    std::vector<std::int64_t> bytes;
  };
  std::vector<OfOneType> types;  // ordered by first use

  void Add(const StagePlan& stage, int number, std::int64_t grad_bytes) {
    const nn::DType dtype = stage.parameter_dtypes[number];
    const bool split = stage.IsSplit(number);
    const bool partial = stage.IsPartial(number);
    auto type = std::find_if(types.begin(), types.end(), [&](const auto& t) {
      return t.dtype == dtype && t.split == split && t.partial == partial;
    });
    if (type == types.end()) {
      types.push_back({dtype, split, partial, {}, {}});
      type = types.end() - 1;
    }
    type->numbers.push_back(number);
    type->bytes.push_back(grad_bytes);
  }

  // Returns the buckets, ordered by when their last gradient is complete.
  std::vector<std::vector<int>> Buckets(
      absl::Span<const std::int64_t> limits) const {
    std::vector<std::vector<int>> all;
    for (const OfOneType& type : types) {
      for (std::vector<int>& bucket : AssignToBuckets(type.bytes, limits)) {
        for (int& i : bucket) i = type.numbers[i];
        all.push_back(std::move(bucket));
      }
    }
    // Indices descend within a bucket, and over the buckets of a dtype.
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.back() > b.back();
    });
    return all;
  }
};

class Filler {
 public:
  Filler(const StageBucketOptions& options,
         std::vector<std::vector<bool>> trained, std::vector<StagePlan>& stages)
      : options_(options),
        limits_(
            options.limits.empty()
                ? std::vector<std::int64_t>{options.buckets.first_bucket_bytes,
                                            options.buckets.bucket_bytes}
                : options.limits),
        trained_(std::move(trained)),
        stages_(stages) {}

  void Fill() {
    FindHolders();
    for (int s = 0; s < static_cast<int>(stages_.size()); ++s) FillOwn(s);
    FillTied();
  }

 private:
  // The stages that list a parameter, and its index in each.
  using Holders = std::map<int, int>;

  void FindHolders() {
    for (int s = 0; s < static_cast<int>(stages_.size()); ++s) {
      const std::vector<std::string>& names = stages_[s].parameters;
      for (int i = 0; i < static_cast<int>(names.size()); ++i) {
        holders_[names[i]].emplace(s, i);
      }
    }
    for (const auto& [name, holders] : holders_) {
      if (holders.size() == 1) continue;
      const bool trained =
          std::any_of(holders.begin(), holders.end(),
                      [&](const auto& at) { return Trains(at); });
      for (const auto& [s, i] : holders) trained_[s][i] = trained;
    }
  }

  bool Trains(const std::pair<const int, int>& at) const {
    return trained_[at.first][at.second];
  }

  std::int64_t GradBytes(const StagePlan& stage, int i) const {
    const nn::DType dtype =
        options_.grad_dtype.value_or(stage.parameter_dtypes[i]);
    return stage.parameter_elems[i] *
           static_cast<std::int64_t>(nn::SizeOf(dtype));
  }

  // Fills the buckets of parameters that no other stage has.
  void FillOwn(int s) {
    StagePlan& stage = stages_[s];
    Trained own, delayed;
    for (int i = 0; i < static_cast<int>(stage.parameters.size()); ++i) {
      if (!trained_[s][i]) {
        stage.frozen.push_back(i);
      } else if (holders_[stage.parameters[i]].size() == 1) {
        const bool late = options_.delayed.count(stage.parameters[i]) > 0;
        (late ? delayed : own).Add(stage, i, GradBytes(stage, i));
      }
    }
    stage.buckets = own.Buckets(limits_);
    constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
    for (std::vector<int>& bucket : delayed.Buckets({kNoLimit})) {
      stage.buckets.push_back(std::move(bucket));
    }
  }

  // Fills the buckets of shared parameters: those that the same stages share go
  // together, in the order of the first of these stages.
  void FillTied() {
    std::map<std::vector<int>, Trained> sets;  // keyed by the sharing stages
    for (int s = 0; s < static_cast<int>(stages_.size()); ++s) {
      const StagePlan& stage = stages_[s];
      for (int i = 0; i < static_cast<int>(stage.parameters.size()); ++i) {
        const Holders& holders = holders_[stage.parameters[i]];
        const bool is_first = holders.begin()->first == s;
        if (holders.size() == 1 || !is_first || !trained_[s][i]) continue;
        std::vector<int> members;
        for (const auto& holder : holders) members.push_back(holder.first);
        sets[members].Add(stage, i, GradBytes(stage, i));
      }
    }
    for (const auto& [members, shared] : sets) {
      for (const std::vector<int>& bucket : shared.Buckets(limits_)) {
        AddTied(members, bucket);
      }
    }
  }

  // `bucket`: indices of parameters in the first member.
  void AddTied(const std::vector<int>& members,
               const std::vector<int>& bucket) {
    for (const int s : members) {
      std::vector<int>& own = stages_[s].buckets.emplace_back();
      for (const int i : bucket) {
        own.push_back(holders_[stages_[members[0]].parameters[i]][s]);
      }
    }
  }

  const StageBucketOptions options_;
  const std::vector<std::int64_t> limits_;
  std::vector<std::vector<bool>> trained_;
  std::vector<StagePlan>& stages_;
  std::map<std::string, Holders> holders_;
};

// Returns the child whose name `rest` begins with, and removes the name; or
// else the only child without a name. Null: there is none, or several.
const nn::Module* TakeChild(const nn::Module& module, absl::string_view& rest) {
  const nn::Module* unnamed = nullptr;
  int count = 0;
  for (const auto& child : module.children()) {
    const std::string& name = child->name();
    if (name.empty()) {
      unnamed = child.get();
      ++count;
    } else if (rest == name ||
               absl::StartsWith(rest, absl::StrCat(name, "."))) {
      rest.remove_prefix(std::min(name.size() + 1, rest.size()));
      return child.get();
    }
  }
  return count == 1 ? unnamed : nullptr;
}

// Returns the part of the stage that the module at `path` belongs to.
const nn::Module* PartOf(const nn::Module& stage, absl::string_view path) {
  const nn::Module* part = &stage;
  while (!part->recomputes() &&
         dynamic_cast<const nn::Sequential*>(part) != nullptr) {
    const nn::Module* const child = TakeChild(*part, path);
    if (child == nullptr) break;
    part = child;
  }
  return part;
}

// Returns when a forward of the stage reads each bucket.
ChunkReads ReadsOf(const StagePlan& stage, int owners, bool keep) {
  ChunkReads chunk;
  chunk.keep = keep;
  for (const std::vector<int>& bucket : stage.buckets) {
    BucketReads reads = {stage.FirstPart(bucket[0]), stage.LastPart(bucket[0]),
                         0};
    std::int64_t bytes = 0;
    for (const int i : bucket) {
      reads.first = std::min(reads.first, stage.FirstPart(i));
      reads.last = std::max(reads.last, stage.LastPart(i));
      bytes += stage.parameter_elems[i] *
               static_cast<std::int64_t>(nn::SizeOf(stage.parameter_dtypes[i]));
    }
    reads.bytes = bytes / owners * (owners - 1);
    chunk.buckets.push_back(reads);
  }
  return chunk;
}

absl::Status BadPieces(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("plan: ", field, " ", what, "; make the plan anew"));
}

// Checks that the parameters of each bucket are all of the kind for which
// `is_of_kind(parameter)` holds, or none.
template <typename IsOfKind>
absl::Status CheckAlike(const std::string& field, const StagePlan& stage,
                        absl::string_view what, IsOfKind is_of_kind) {
  for (std::size_t k = 0; k < stage.buckets.size(); ++k) {
    for (const int i : stage.buckets[k]) {
      if (is_of_kind(i) == is_of_kind(stage.buckets[k][0])) continue;
      return BadPieces(absl::StrCat(field, ".buckets[", k, "]"), what);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSplits(const std::string& field, const StagePlan& stage,
                         int tp) {
  const std::size_t split = stage.split_elems.size();
  const std::size_t partial = stage.partial_grads.size();
  const auto fits = [&](std::size_t listed) {
    return listed == 0 || (tp > 1 && listed == stage.parameters.size());
  };
  if (!fits(split) || !fits(partial)) {
    return BadPieces(
        absl::StrCat(field, ".parameters"),
        absl::StrCat("have ", fits(partial) ? "split_elems" : "partial_grad",
                     ", but tp is 1, or not all"));
  }
  TROUPE_RETURN_IF_ERROR(CheckAlike(field, stage,
                                    "has pieces of parameters, and whole ones",
                                    [&](int i) { return stage.IsSplit(i); }));
  TROUPE_RETURN_IF_ERROR(CheckAlike(field, stage,
                                    "has gradients in parts, and whole ones",
                                    [&](int i) { return stage.IsPartial(i); }));
  for (std::size_t i = 0; i < split; ++i) {
    const std::int64_t elems = stage.split_elems[i];
    const std::int64_t own = stage.parameter_elems[i];
    // Pieces are equal, and the last one may be padded.
    if (elems == 0 || (own <= elems && elems - own <= (tp - 1) * own)) continue;
    return BadPieces(absl::StrCat(field, ".parameters[", i, "]"),
                     "has other elements than pieces for all of tp");
  }
  return absl::OkStatus();
}

void FillBuckets(const StageBucketOptions& options,
                 std::vector<std::vector<bool>> trained,
                 std::vector<StagePlan>& stages) {
  Filler(options, std::move(trained), stages).Fill();
}

void FillParts(const nn::Module& module, const nn::ShapeRecord& record,
               absl::Span<nn::Parameter* const> parameters, StagePlan& stage) {
  absl::flat_hash_map<const nn::Parameter*, std::size_t> numbers;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    numbers.emplace(parameters[i], i);
  }
  std::vector<int> first(parameters.size(), -1), last(parameters.size());
  const nn::Module* present = nullptr;
  int part = -1;
  for (const nn::ShapeRecord::Use& use : record.uses) {
    const nn::Module* const here = PartOf(module, use.module);
    if (here != present) ++part;
    present = here;
    const std::size_t i = numbers.at(use.parameter);
    if (first[i] < 0) first[i] = part;
    last[i] = part;
  }
  if (part < 1) return;
  for (int& number : first) number = std::max(number, 0);
  stage.first_parts = std::move(first);
  stage.last_parts = std::move(last);
}

ReductionOptions ReductionsOf(const PlanOptions& options, const Plan& plan,
                              const std::vector<int>& stages,
                              bool reduce_inline) {
  ReductionOptions reductions = options.reductions;
  reductions.tied = TiedBuckets(plan.stages, stages);
  // Owners have findings in their own slices, ranks along tp in their pieces.
  reductions.reduce_findings =
      options.mesh.pp() > 1 || plan.owners() > 1 || plan.SplitsParameters();
  reductions.gather_values = plan.owners() > 1 && !plan.gathers_values();
  reductions.sum_parameters = reductions.sum_parameters &&
                              (plan.owners() > 1 || plan.SplitsParameters());
  // If steps overlap, gathers run beside the next forward. A reduction that
  // frees the memory of gradients must not wait for an update. And only time
  // would say whether a gather or the sum of a tied bucket, which is in another
  // group, starts first, and not the same on all replicas.
  const bool has_ties =
      std::any_of(reductions.tied.begin(), reductions.tied.end(),
                  [](int buckets) { return buckets > 0; });
  const bool at_end = options.cross_step || plan.SlicesGradients() || has_ties;
  reductions.gather_order = reduce_inline ? GatherOrder::kBehindUpdate
                            : at_end      ? GatherOrder::kAtEnd
                                          : GatherOrder::kBehindNext;
  reductions.each_micro_batch = plan.ReducesEachMicroBatch();
  reductions.fuse_updates = options.fuse_updates && reduce_inline &&
                            options.mesh.dp() > 1 && !plan.reduction_dtype &&
                            plan.hook.empty() && plan.owners() == 1 &&
                            !reductions.update_needs_all_buckets;
  return reductions;
}

void GatherBeforeUses(const PlanOptions& options, const Plan& plan,
                      const std::vector<int>& stages,
                      const ReductionOptions& reductions, RankPlan& rank) {
  if (!plan.gathers_values()) return;
  GatherOptions gathers;
  gathers.bytes_ahead = options.zero_ahead_bytes;
  for (const int stage : stages) {
    gathers.chunks.push_back(
        ReadsOf(plan.stages[stage], plan.owners(), options.zero_keep));
  }
  rank.train = AddGathers(rank.train, reductions, gathers);
  rank.evaluate = AddGathers(rank.evaluate, {}, gathers);
}

std::int64_t MostGathered(const Plan& plan, int pp) {
  if (!plan.gathers_values()) return 0;
  std::vector<ChunkReads> chunks;
  for (const int stage : StagesAt(plan.placement(), pp)) {
    chunks.push_back(
        ReadsOf(plan.stages[stage], plan.owners(), /*keep=*/false));
  }
  std::int64_t held = 0, most = 0;
  for (const Action& action : plan.ranks[pp].train.actions) {
    const bool gathers = action.kind == ActionKind::kGatherValues;
    if (!gathers && action.kind != ActionKind::kReleaseValues) continue;
    const std::int64_t bytes = chunks[action.chunk].buckets[action.index].bytes;
    held += gathers ? bytes : -bytes;
    most = std::max(most, held);
  }
  return most;
}

}  // namespace troupe::pipeline

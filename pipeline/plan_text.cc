// Plan::ToString, and accessors of options, plans and stages.

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "pipeline/plan.h"
#include "pipeline/ties.h"

namespace troupe::pipeline {
namespace {

// "7850 elements: 2.bias 2.weight"
std::string Describe(const StagePlan& stage, const std::vector<int>& numbers) {
  std::int64_t elems = 0;
  std::vector<std::string> names;
  for (int p : numbers) {
    elems += stage.parameter_elems[p];
    names.push_back(stage.parameters[p]);
  }
  return absl::StrCat(elems, " elements: ", absl::StrJoin(names, " "));
}

// ", f32[2, 4], skip1 f32[2, 8]"
std::string MoreInputsText(const StagePlan& stage) {
  std::string text;
  for (const nn::TensorSpec& input : stage.more_inputs) {
    absl::StrAppend(&text, ", ", input.ToString());
  }
  for (const SkipPlan& skip : stage.skips) {
    absl::StrAppend(&text, ", ", skip.name, " ", skip.spec.ToString());
  }
  return text;
}

// Returns " (tied with stage 3)" for a bucket that other stages share, else "".
std::string TieText(const std::vector<Tie>& ties, int stage, int bucket) {
  for (const Tie& tie : ties) {
    std::vector<int> others;
    bool is_member = false;
    for (const TieMember& member : tie.members) {
      const bool own = member == TieMember{stage, bucket};
      is_member |= own;
      if (!own) others.push_back(member.stage);
    }
    if (!is_member) continue;
    return absl::StrCat(" (tied with stage", others.size() > 1 ? "s " : " ",
                        absl::StrJoin(others, ", "), ")");
  }
  return "";
}

std::string StageText(const Plan& plan, const std::vector<Tie>& ties,
                      std::size_t number) {
  const StagePlan& stage = plan.stages[number];
  const bool alone = plan.stages.size() == plan.ranks.size();
  std::string text = absl::StrCat("stage ", number);
  if (!alone) {
    absl::StrAppend(&text, " (pp ", stage.place.pp, ", chunk ",
                    stage.place.chunk, ")");
  }
  absl::StrAppend(
      &text, ": ", stage.input.ToString(), MoreInputsText(stage), " -> ",
      stage.output.ToString(), ", ", stage.parameters.size(), " parameters in ",
      stage.buckets.size(), " bucket(s)",
      plan.ranks[stage.place.pp].reduce_inline ? ", reduced inline" : "",
      stage.shares_buffers ? ", buffers of the first replica" : "", "\n");
  for (std::size_t k = 0; k < stage.buckets.size(); ++k) {
    absl::StrAppend(
        &text, "  bucket ", k,
        TieText(ties, static_cast<int>(number), static_cast<int>(k)),
        stage.IsSplitBucket(static_cast<int>(k)) ? " (split along tp)" : "",
        stage.IsPartialBucket(static_cast<int>(k)) ? " (summed along tp)" : "",
        ": ", Describe(stage, stage.buckets[k]), "\n");
  }
  if (!stage.frozen.empty()) {
    absl::StrAppend(&text, "  frozen: ", Describe(stage, stage.frozen), "\n");
  }
  if (alone) {
    absl::StrAppend(
        &text, "  train: ", plan.ranks[stage.place.pp].train.ToString(), "\n");
  }
  return text;
}

}  // namespace

std::int64_t PlanOptions::MicroBatchSize() const {
  const std::int64_t size = micro_batch_size > 0
                                ? micro_batch_size
                                : LargestShare(global_batch_size, mesh.dp());
  return std::max<std::int64_t>(size, 1);
}

int PlanOptions::MicroBatches() const {
  const std::int64_t share = LargestShare(global_batch_size, mesh.dp());
  const std::int64_t size = MicroBatchSize();
  const std::int64_t count = share / size + (share % size != 0);
  return static_cast<int>(std::max<std::int64_t>(count, 1));
}

std::vector<nn::TensorSpec> StagePlan::inputs() const {
  std::vector<nn::TensorSpec> all = {{input, input_dtype}};
  all.insert(all.end(), more_inputs.begin(), more_inputs.end());
  return all;
}

std::int64_t StagePlan::received_bytes() const {
  std::vector<nn::TensorSpec> received = inputs();
  for (const SkipPlan& skip : skips) received.push_back(skip.spec);
  std::int64_t bytes = 0;
  for (const nn::TensorSpec& spec : received) {
    bytes +=
        spec.shape.numel() * static_cast<std::int64_t>(nn::SizeOf(spec.dtype));
  }
  return bytes;
}

absl::StatusOr<nn::StashedTensors> StagePlan::SkipsOn(nn::Device device) const {
  nn::StashedTensors stashed;
  for (const SkipPlan& skip : skips) {
    TROUPE_RETURN_IF_ERROR(stashed.Add(
        skip.name, /*module=*/"",
        nn::Tensor::Meta(skip.spec.shape, skip.spec.dtype, device)));
  }
  return stashed;
}

bool Plan::SharesBuffers(int rank) const {
  const std::vector<int> own = StagesOf(rank);
  return std::any_of(own.begin(), own.end(),
                     [&](int stage) { return stages[stage].shares_buffers; });
}

Placement Plan::placement() const {
  Placement placement;
  for (const StagePlan& stage : stages) placement.push_back(stage.place);
  return placement;
}

int Plan::rounds() const {
  int rounds = 1;
  for (const RankPlan& rank : ranks) {
    rounds = std::max(rounds, rank.train.rounds());
  }
  return rounds;
}

std::int64_t Plan::parameter_elems() const {
  std::int64_t sum = 0;
  absl::flat_hash_set<absl::string_view> seen;
  for (const StagePlan& stage : stages) {
    for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
      if (!seen.insert(stage.parameters[i]).second) continue;
      sum += stage.IsSplit(static_cast<int>(i)) ? stage.split_elems[i]
                                                : stage.parameter_elems[i];
    }
  }
  return sum;
}

bool Plan::SplitsParameters() const {
  return std::any_of(stages.begin(), stages.end(), [](const StagePlan& stage) {
    return std::any_of(stage.split_elems.begin(), stage.split_elems.end(),
                       [](std::int64_t elems) { return elems > 0; });
  });
}

bool Plan::GathersPieces(int rank) const {
  return SplitsParameters() &&
         mesh.RankWith(mesh.RankWith(rank, kTpAxis, 0), kPpAxis, 0) == 0;
}

std::string Plan::ToString() const {
  const bool is_even = global_batch_size % mesh.dp() == 0;
  std::string text = absl::StrCat(
      "mesh ", mesh.ToString(), ", global batch ", global_batch_size,
      is_even ? " = " : " over ", mesh.dp(), is_even ? " x " : ", each ",
      micro_batches, " micro-batches of ", is_even ? "" : "up to ",
      micro_batch_size,
      last_micro_batch_size() == micro_batch_size
          ? ""
          : absl::StrCat(", the last of ", last_micro_batch_size()),
      ", ", threads_per_rank, " thread(s) per rank\n");
  if (!kernels.empty()) {
    absl::StrAppend(&text, nn::DTypeName(dtype), " on ", device.ToString(),
                    ", kernels ", kernels, ", reduced in the order ",
                    reduction_order, ", inline up to ", inline_bytes, " bytes");
    if (reduction_dtype) {
      absl::StrAppend(&text, ", reduced in ", nn::DTypeName(*reduction_dtype));
    }
    if (!hook.empty()) absl::StrAppend(&text, ", reduced by ", hook);
    if (dynamic_loss_scale) {
      absl::StrAppend(&text, ", dynamic loss scale, first ", loss_scale);
    } else if (loss_scale != 1) {
      absl::StrAppend(&text, ", loss scale ", loss_scale);
    }
    if (cross_step) absl::StrAppend(&text, ", across steps");
    if (sequence_parallel) absl::StrAppend(&text, ", tokens shared along tp");
    if (depth_blocks > 1) {
      absl::StrAppend(&text, ", depths in ", depth_blocks, " blocks");
    }
    if (zero_stage > 0) absl::StrAppend(&text, ", ZeRO stage ", zero_stage);
    if (gathers_values()) {
      absl::StrAppend(&text, ", up to ", zero_ahead_bytes,
                      " bytes of values gathered ahead",
                      zero_keep ? ", kept for the step" : "");
    }
    if (zero_accumulates_whole) {
      absl::StrAppend(&text, ", whole gradients until the last micro-batch");
    }
    if (dispatch == Dispatch::kStrict) {
      absl::StrAppend(&text, ", in the tables' order");
    }
    absl::StrAppend(&text, "\n");
  }
  for (const auto& [device, choices] : algorithms) {
    absl::StrAppend(&text, choices.size(), " algorithm(s) chosen for ", device,
                    "\n");
  }
  const std::vector<Tie> ties = TiesOf(stages);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    absl::StrAppend(&text, StageText(*this, ties, i));
  }
  if (stages.size() == ranks.size()) return text;
  for (std::size_t pp = 0; pp < ranks.size(); ++pp) {
    absl::StrAppend(&text, "pp ", pp, ": ", ranks[pp].train.ToString(), "\n");
  }
  return text;
}

}  // namespace troupe::pipeline

// Plan::ToString and what else a plan says of itself.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipeline/plan.h"

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

std::string StageText(const Plan& plan, std::size_t number) {
  const StagePlan& stage = plan.stages[number];
  const bool alone = plan.stages.size() == plan.ranks.size();
  std::string text = absl::StrCat("stage ", number);
  if (!alone) {
    absl::StrAppend(&text, " (pp ", stage.place.pp, ", chunk ",
                    stage.place.chunk, ")");
  }
  absl::StrAppend(
      &text, ": ", stage.input.ToString(), " -> ", stage.output.ToString(),
      ", ", stage.parameters.size(), " parameters in ", stage.buckets.size(),
      " bucket(s)",
      plan.ranks[stage.place.pp].reduce_inline ? ", reduced inline" : "", "\n");
  for (std::size_t k = 0; k < stage.buckets.size(); ++k) {
    absl::StrAppend(&text, "  bucket ", k, ": ",
                    Describe(stage, stage.buckets[k]), "\n");
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

Placement Plan::placement() const {
  Placement placement;
  for (const StagePlan& stage : stages) placement.push_back(stage.place);
  return placement;
}

std::int64_t Plan::parameter_elems() const {
  std::int64_t sum = 0;
  for (const StagePlan& stage : stages) {
    for (std::int64_t elems : stage.parameter_elems) sum += elems;
  }
  return sum;
}

std::string Plan::ToString() const {
  std::string text = absl::StrCat(
      "mesh ", mesh.ToString(), ", global batch ", global_batch_size, " = ",
      mesh.dp(), " x ", micro_batches, " micro-batches of ", micro_batch_size,
      ", ", threads_per_rank, " thread(s) per rank\n");
  if (!kernels.empty()) {
    absl::StrAppend(&text, nn::DTypeName(dtype), " on ", device.ToString(),
                    ", kernels ", kernels, ", reduced in the order ",
                    reduction_order, ", inline up to ", inline_bytes, " bytes");
    if (reduction_dtype) {
      absl::StrAppend(&text, ", reduced in ", nn::DTypeName(*reduction_dtype));
    }
    if (dynamic_loss_scale) {
      absl::StrAppend(&text, ", dynamic loss scale, first ", loss_scale);
    } else if (loss_scale != 1) {
      absl::StrAppend(&text, ", loss scale ", loss_scale);
    }
    if (cross_step) absl::StrAppend(&text, ", across steps");
    if (dispatch == Dispatch::kStrict) {
      absl::StrAppend(&text, ", in the tables' order");
    }
    absl::StrAppend(&text, "\n");
  }
  for (const auto& [device, choices] : algorithms) {
    absl::StrAppend(&text, choices.size(), " algorithm(s) chosen for ", device,
                    "\n");
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    absl::StrAppend(&text, StageText(*this, i));
  }
  if (stages.size() == ranks.size()) return text;
  for (std::size_t pp = 0; pp < ranks.size(); ++pp) {
    absl::StrAppend(&text, "pp ", pp, ": ", ranks[pp].train.ToString(), "\n");
  }
  return text;
}

}  // namespace troupe::pipeline

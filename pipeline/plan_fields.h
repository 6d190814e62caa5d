// The fields of a plan's JSON, each named once: its name, its limits, and the
// member that holds it. Writer and reader are visitors of this list.
//
// VisitFields(visit, plan) calls visit(field, value) for each field, in the
// order of the text; `value` is const if the plan is. It calls
// visit.Flat(optional struct) for one whose fields stand among those of the
// plan.
//
// A new field of a plan is a line in VisitFields(). Texts of earlier versions
// do not have it: declare it as Later(), and let the default of its member
// stand for how a job was before there was the field. A bool or a text that few
// plans set is a Flag().

#ifndef PIPELINE_PLAN_FIELDS_H_
#define PIPELINE_PLAN_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "nn/kernels/choice_cache.h"
#include "nn/kernels/loss_scale.h"
#include "nn/tensor/dtype.h"
#include "pipeline/mesh.h"
#include "pipeline/plan.h"
#include "pipeline/plan_json.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

// Name of a field, and the limits that a reader keeps to. Those that do not
// apply to its type are not used.
struct PlanField {
  const char* name;
  // Whether the first version of the format did not have it.
  bool is_later = false;
  // Whether the text has it, a bool, a text or an int, only if it is true, not
  // empty or not `absent`: texts and hashes of plans that it does not concern
  // stay as they were.
  bool is_flag = false;
  // Range of an integer, within that of its type.
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  // Limit on the entries of a list; lists within it have no limit.
  std::size_t entries_max = kPlanBytesMax;
  // Limit on the bytes of a text, or of each text in a list.
  std::size_t letters_max = kPlanNameMax;
  // Default of an int that is a flag.
  std::int64_t absent = 0;

  constexpr PlanField Unless(std::int64_t value) const {
    PlanField field = *this;
    field.absent = value;
    return field;
  }
  constexpr PlanField From(std::int64_t least) const {
    PlanField field = *this;
    field.min = least;
    return field;
  }
  constexpr PlanField To(std::int64_t most) const {
    PlanField field = *this;
    field.max = most;
    return field;
  }
  constexpr PlanField Entries(std::size_t most) const {
    PlanField field = *this;
    field.entries_max = most;
    return field;
  }
  constexpr PlanField Letters(std::size_t most) const {
    PlanField field = *this;
    field.letters_max = most;
    return field;
  }
};

constexpr PlanField Named(const char* name) { return {name}; }
constexpr PlanField Later(const char* name) { return {name, true}; }
constexpr PlanField Flag(const char* name) { return {name, true, true}; }

// Parameter of a stage as the text has it.
struct ParameterEntry {
  std::string name;
  std::int64_t elems = 0;
  nn::DType dtype = nn::DType::kF32;
  std::int64_t split_elems = 0;       // StagePlan::split_elems
  bool partial_grad = false;          // StagePlan::partial_grads
  int first_part = 0, last_part = 0;  // StagePlan::first_parts, last_parts
};

// The parameters of `stage`, which holds them as three lists: a list of
// ParameterEntry in the text.
template <class Stage>
struct ParametersOf {
  Stage& stage;
};

// Algorithms for one kind of device as the text has them. A choice is
// "key choice", both words.
struct DeviceAlgorithms {
  std::string device;
  std::vector<std::string> choices;
};

// Enables an overload of VisitFields() for Struct and const Struct.
template <class T, class Struct>
using If =
    std::enable_if_t<std::is_same_v<std::remove_const_t<T>, Struct>, int>;

template <class Visitor, class T, If<T, Axis> = 0>
void VisitFields(Visitor&& visit, T& axis) {
  visit(Named("name").Letters(kAxisNameMax), axis.name);
  visit(Named("size").From(1).To(kMeshRanksMax), axis.size);
}

template <class Visitor, class T, If<T, ParameterEntry> = 0>
void VisitFields(Visitor&& visit, T& parameter) {
  visit(Named("name"), parameter.name);
  visit(Named("elems"), parameter.elems);
  visit(Named("dtype"), parameter.dtype);
  visit(Flag("split_elems"), parameter.split_elems);
  visit(Flag("partial_grad"), parameter.partial_grad);
  visit(Flag("first_part").From(0).To(kActionIndexMax), parameter.first_part);
  visit(Flag("last_part").From(0).To(kActionIndexMax), parameter.last_part);
}

template <class Visitor, class T, If<T, nn::TensorSpec> = 0>
void VisitFields(Visitor&& visit, T& spec) {
  visit(Named("shape"), spec.shape);
  visit(Named("dtype"), spec.dtype);
}

template <class Visitor, class T, If<T, SkipPlan> = 0>
void VisitFields(Visitor&& visit, T& skip) {
  visit(Named("name"), skip.name);
  VisitFields(visit, skip.spec);
}

template <class Visitor, class T, If<T, DeviceAlgorithms> = 0>
void VisitFields(Visitor&& visit, T& algorithms) {
  using Cache = nn::ChoiceCache;
  visit(Named("device").Letters(Cache::kContextBytesMax), algorithms.device);
  visit(Named("choices")
            .Entries(Cache::kEntriesMax)
            .Letters(Cache::kKeyBytesMax + 1 + Cache::kChoiceBytesMax),
        algorithms.choices);
}

// An interval of 0 stands for a scale that is constant.
template <class Visitor, class T, If<T, nn::LossScaleRule> = 0>
void VisitFields(Visitor&& visit, T& rule) {
  visit(Later("loss_scale_growth_interval"), rule.growth_interval);
  visit(Later("loss_scale_min"), rule.min);
}

template <class Visitor, class T, If<T, StagePlan> = 0>
void VisitFields(Visitor&& visit, T& stage) {
  const ParametersOf<T> parameters = {stage};
  visit(Named("pp").To(kMeshRanksMax), stage.place.pp);
  visit(Named("chunk").To(kChunksMax - 1), stage.place.chunk);
  visit(Named("input"), stage.input);
  visit(Named("input_dtype"), stage.input_dtype);
  visit(Later("more_inputs").Entries(kStageTensorsMax), stage.more_inputs);
  visit(Later("skips").Entries(kStageTensorsMax), stage.skips);
  visit(Named("output"), stage.output);
  visit(Named("output_dtype"), stage.output_dtype);
  visit(Named("flops"), stage.flops);
  visit(Later("layer_axes").Entries(kMeshAxesMax).Letters(kAxisNameMax),
        stage.layer_axes);
  visit(Flag("shares_buffers"), stage.shares_buffers);
  visit(Named("parameters"), parameters);
  visit(Named("buckets").Entries(kActionIndexMax), stage.buckets);
  visit(Named("frozen"), stage.frozen);
}

template <class Visitor, class T, If<T, RankPlan> = 0>
void VisitFields(Visitor&& visit, T& rank) {
  visit(Named("train").Letters(kPlanBytesMax), rank.train);
  visit(Named("evaluate").Letters(kPlanBytesMax), rank.evaluate);
  visit(Named("reduce_inline"), rank.reduce_inline);
}

template <class Visitor, class T, If<T, Plan> = 0>
void VisitFields(Visitor&& visit, T& plan) {
  visit(Named("mesh").Entries(kMeshAxesMax), plan.mesh);
  visit(Named("cuts").Entries(kPlanStagesMax), plan.cuts);
  visit(Named("global_batch_size").From(1), plan.global_batch_size);
  visit(Named("micro_batch_size").From(1), plan.micro_batch_size);
  visit(Named("micro_batches").From(1).To(kActionIndexMax), plan.micro_batches);
  visit(Named("threads_per_rank").From(1), plan.threads_per_rank);
  visit(Named("inline_bytes").From(-1), plan.inline_bytes);
  visit(Named("fuse_updates"), plan.fuse_updates);
  visit(Named("update_needs_all_buckets"), plan.update_needs_all_buckets);
  visit(Named("dtype"), plan.dtype);
  visit(Named("grad_dtype"), plan.grad_dtype);
  visit(Later("reduction_dtype"), plan.reduction_dtype);
  visit(Flag("hook"), plan.hook);
  visit(Later("data_dtype"), plan.data_dtype);
  visit(Later("loss_scale"), plan.loss_scale);
  visit.Flat(plan.dynamic_loss_scale);
  visit(Later("cross_step"), plan.cross_step);
  visit(Flag("zero_stage").From(0).To(kZeroStageMax), plan.zero_stage);
  visit(Flag("mesh_is_chosen"), plan.mesh_is_chosen);
  visit(Flag("schedule_name"), plan.schedule_name);
  visit(Flag("recomputes"), plan.recomputes);
  visit(Flag("sequence_parallel"), plan.sequence_parallel);
  visit(Flag("depth_blocks").Unless(1).From(1).To(kDepthBlocksMax),
        plan.depth_blocks);
  visit(Flag("zero_accumulates_whole"), plan.zero_accumulates_whole);
  visit(Flag("zero_ahead_bytes").From(0), plan.zero_ahead_bytes);
  visit(Flag("zero_keep"), plan.zero_keep);
  visit(Later("strict_order"), plan.dispatch);
  visit(Named("device"), plan.device);
  visit(Named("kernels"), plan.kernels);
  visit(Named("reduction_order"), plan.reduction_order);
  visit(Later("algorithms").Entries(kPlanAlgorithmDevicesMax), plan.algorithms);
  visit(Named("stages").Entries(kPlanStagesMax), plan.stages);
  visit(Named("ranks").Entries(kPlanStagesMax), plan.ranks);
}

}  // namespace troupe::pipeline

#endif  // PIPELINE_PLAN_FIELDS_H_

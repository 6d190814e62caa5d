#include "pipeline/plan_json.h"

#include <utility>

#include "nlohmann/json.hpp"

namespace troupe::pipeline {
namespace {

using Json = nlohmann::ordered_json;

std::string NameOf(nn::DType dtype) {
  return std::string(nn::DTypeName(dtype));
}

Json MeshJson(const Mesh& mesh) {
  Json axes = Json::array();
  for (const Axis& axis : mesh.axes()) {
    axes.push_back({{"name", axis.name}, {"size", axis.size}});
  }
  return axes;
}

Json ShapeJson(const nn::Shape& shape) {
  Json dims = Json::array();
  for (std::int64_t dim : shape.dims()) dims.push_back(dim);
  return dims;
}

Json SpecJson(const nn::TensorSpec& spec) {
  return {{"shape", ShapeJson(spec.shape)}, {"dtype", NameOf(spec.dtype)}};
}

Json StageJson(const StagePlan& stage) {
  Json parameters = Json::array();
  for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
    parameters.push_back({{"name", stage.parameters[i]},
                          {"elems", stage.parameter_elems[i]},
                          {"dtype", NameOf(stage.parameter_dtypes[i])}});
  }
  Json more_inputs = Json::array(), skips = Json::array();
  for (const nn::TensorSpec& input : stage.more_inputs) {
    more_inputs.push_back(SpecJson(input));
  }
  for (const SkipPlan& skip : stage.skips) {
    Json named = {{"name", skip.name}};
    named.update(SpecJson(skip.spec));
    skips.push_back(std::move(named));
  }
  return {
      {"pp", stage.place.pp},
      {"chunk", stage.place.chunk},
      {"input", ShapeJson(stage.input)},
      {"input_dtype", NameOf(stage.input_dtype)},
      {"more_inputs", std::move(more_inputs)},
      {"skips", std::move(skips)},
      {"output", ShapeJson(stage.output)},
      {"output_dtype", NameOf(stage.output_dtype)},
      {"flops", stage.flops},
      {"layer_axes", stage.layer_axes},
      {"parameters", std::move(parameters)},
      {"buckets", stage.buckets},
      {"frozen", stage.frozen},
  };
}

// Entries "key choice", both words.
Json AlgorithmsJson(const nn::ChoicesByDevice& algorithms) {
  Json devices = Json::array();
  for (const auto& [device, choices] : algorithms) {
    Json lines = Json::array();
    for (const auto& [key, choice] : choices)
      lines.push_back(key + " " + choice);
    devices.push_back({{"device", device}, {"choices", std::move(lines)}});
  }
  return devices;
}

}  // namespace

std::string PlanToJson(const Plan& plan) {
  Json stages = Json::array(), ranks = Json::array();
  for (const StagePlan& stage : plan.stages) {
    stages.push_back(StageJson(stage));
  }
  for (const RankPlan& rank : plan.ranks) {
    ranks.push_back({{"train", rank.train.ToString()},
                     {"evaluate", rank.evaluate.ToString()},
                     {"reduce_inline", rank.reduce_inline}});
  }
  const Json json = {
      {"format", kPlanFormat},
      {"mesh", MeshJson(plan.mesh)},
      {"cuts", plan.cuts},
      {"global_batch_size", plan.global_batch_size},
      {"micro_batch_size", plan.micro_batch_size},
      {"micro_batches", plan.micro_batches},
      {"threads_per_rank", plan.threads_per_rank},
      {"inline_bytes", plan.inline_bytes},
      {"fuse_updates", plan.fuse_updates},
      {"update_needs_all_buckets", plan.update_needs_all_buckets},
      {"dtype", NameOf(plan.dtype)},
      {"grad_dtype", plan.grad_dtype ? NameOf(*plan.grad_dtype) : ""},
      {"reduction_dtype",
       plan.reduction_dtype ? NameOf(*plan.reduction_dtype) : ""},
      {"data_dtype", NameOf(plan.data_dtype)},
      {"loss_scale", plan.loss_scale},
      {"loss_scale_growth_interval",
       plan.dynamic_loss_scale ? plan.dynamic_loss_scale->growth_interval : 0},
      {"loss_scale_min",
       plan.dynamic_loss_scale ? plan.dynamic_loss_scale->min : 0},
      {"cross_step", plan.cross_step},
      {"strict_order", plan.dispatch == Dispatch::kStrict},
      {"device", plan.device.ToString()},
      {"kernels", plan.kernels},
      {"reduction_order", plan.reduction_order},
      {"algorithms", AlgorithmsJson(plan.algorithms)},
      {"stages", std::move(stages)},
      {"ranks", std::move(ranks)},
  };
  // Names that are no UTF-8 are replaced, rather than an exception.
  return json.dump(/*indent=*/1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace) +
         "\n";
}

std::uint64_t PlanHash(const Plan& plan) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : PlanToJson(plan)) {
    hash = (hash ^ byte) * 0x100000001b3;
  }
  return hash;
}

}  // namespace troupe::pipeline

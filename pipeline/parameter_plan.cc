#include "pipeline/parameter_plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/edit_distance.h"
#include "base/field_error.h"
#include "pipeline/stage_buckets.h"

namespace troupe::pipeline {
namespace {

absl::Status CheckReplicas(const Mesh& mesh) {
  TROUPE_RETURN_IF_ERROR(WithAxisFields(mesh.Check(), mesh));
  if (mesh.size() == mesh.dp()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a plan of parameters is for replicas of a whole model, and "
      "the mesh has ",
      mesh.size(), " ranks with dp = ", mesh.dp(), "; use a mesh of dp alone"));
}

// Limit on the names that an error offers.
constexpr std::size_t kNearestMax = 3;

absl::Status CheckDelayed(const std::vector<std::string>& delayed,
                          absl::Span<nn::Parameter* const> parameters) {
  std::vector<std::string> trained;
  for (const nn::Parameter* parameter : parameters) {
    if (parameter->requires_grad) trained.push_back(parameter->name);
  }
  for (const std::string& name : delayed) {
    if (std::find(trained.begin(), trained.end(), name) != trained.end()) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "the delayed parameter \"", name,
        "\" is none that the model trains; the nearest are ",
        absl::StrJoin(base::NearestNames(name, trained, kNearestMax), ", ")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> MakeParameterPlan(
    const ParameterPlanOptions& options,
    absl::Span<nn::Parameter* const> parameters, nn::Device device) {
  TROUPE_RETURN_IF_ERROR(CheckReplicas(options.mesh));
  TROUPE_RETURN_IF_ERROR(CheckDelayed(options.delayed, parameters));
  Plan plan;
  plan.mesh = options.mesh;
  plan.grad_dtype = options.grad_dtype;
  plan.reduction_dtype = options.reduction_dtype;
  plan.inline_bytes = options.inline_bytes;
  plan.fuse_updates = false;
  plan.device = device;
  StagePlan& stage = plan.stages.emplace_back();
  std::vector<bool> trained;
  std::set<std::string> names;
  std::int64_t bytes = 0;
  for (const nn::Parameter* parameter : parameters) {
    if (!names.insert(parameter->name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two parameters have the name \"", parameter->name,
                       "\"; list each parameter of the model once"));
    }
    stage.parameters.push_back(parameter->name);
    stage.parameter_elems.push_back(parameter->shape.numel());
    stage.parameter_dtypes.push_back(parameter->dtype);
    trained.push_back(parameter->requires_grad);
    if (!parameter->requires_grad) continue;
    const nn::DType dtype = options.grad_dtype.value_or(parameter->dtype);
    bytes +=
        parameter->shape.numel() * static_cast<std::int64_t>(nn::SizeOf(dtype));
  }
  FillBuckets({options.buckets,
               options.grad_dtype,
               options.bucket_limits,
               {options.delayed.begin(), options.delayed.end()}},
              {std::move(trained)}, plan.stages);
  plan.ranks.emplace_back().reduce_inline = bytes <= options.inline_bytes;
  return plan;
}

int DelayedBuckets(const Plan& plan, const std::vector<std::string>& delayed) {
  const StagePlan& stage = plan.stages[0];
  const auto is_delayed = [&](const std::vector<int>& bucket) {
    return std::count(delayed.begin(), delayed.end(),
                      stage.parameters[bucket[0]]) > 0;
  };
  return static_cast<int>(
      std::count_if(stage.buckets.begin(), stage.buckets.end(), is_delayed));
}

StepTable LoopTable(int buckets, const LoopTableOptions& options) {
  StepTable table;
  if (options.reduce_loss) {
    table.actions.push_back({ActionKind::kReduceLoss, 0, {}});
  }
  for (int i = 0; i < buckets; ++i) {
    const int k = options.order.empty() ? i : options.order[i];
    table.actions.push_back({ActionKind::kReduceBucket, k, {}});
  }
  for (int k = 0; options.updates && k < buckets; ++k) {
    table.actions.push_back({ActionKind::kUpdateBucket, k, {}});
  }
  ReductionOptions needs;
  needs.update_needs_all_buckets = options.update_needs_all_buckets;
  needs.updates_on_request = true;
  return WithNeeds(std::move(table), needs);
}

}  // namespace troupe::pipeline

// Small plans, for tests of the text of plans.

#ifndef TESTS_PIPELINE_PLAN_FIXTURE_H_
#define TESTS_PIPELINE_PLAN_FIXTURE_H_

#include <memory>
#include <utility>
#include <vector>

#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/modules/skip.h"
#include "pipeline/plan.h"

namespace troupe::pipeline {

inline PlanOptions SmallOptions() {
  PlanOptions options;
  options.mesh = Mesh(/*dp=*/2, /*pp=*/2);
  options.cuts = {2};
  options.global_batch_size = 8;
  options.micro_batch_size = 2;
  options.buckets = {/*first_bucket_bytes=*/1, /*bucket_bytes=*/1};
  options.inline_bytes = 0;
  options.kernels = "cpu:0, avx512";
  return options;
}

inline Plan SmallPlan(const PlanOptions& options = SmallOptions()) {
  const nn::ModelFactory factory = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(3, 4);
    model->Append<nn::ReLU>();
    model->Append<nn::Linear>(4, 2);
    for (nn::Parameter* parameter : model->Parameters()) {
      parameter->requires_grad = parameter->name != "2.bias";
    }
    return model;
  };
  return MakePlan(options, factory, {3}, nn::DType::kF32, nn::Device{}).value();
}

// The same layers in a Sequential "0" that is cut before its child 1; child 1
// of the model has no parameters.
inline Plan NestedPlan(const std::vector<Cut>& cuts = {"0.1"}) {
  const nn::ModelFactory factory = [] {
    auto model = std::make_unique<nn::Sequential>();
    auto& inner = model->Append<nn::Sequential>();
    inner.Append<nn::Linear>(3, 4);
    inner.Append<nn::Sequential>().Append<nn::Linear>(4, 2);
    model->Append<nn::ReLU>();
    return model;
  };
  PlanOptions options = SmallOptions();
  options.cuts = cuts;
  return MakePlan(options, factory, {3}, nn::DType::kF32, nn::Device{}).value();
}

// A U-Net of vectors in three stages: "deep" passes through the second one.
inline Plan SkipPlanOf(std::vector<Cut> cuts = {3, 6}) {
  const nn::ModelFactory factory = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(3, 4);
    model->AppendNamed<nn::Stash>("in", "deep");
    model->Append<nn::Linear>(4, 5);
    model->AppendNamed<nn::Stash>("inner", "near");
    model->Append<nn::ReLU>();
    model->AppendNamed<nn::PopConcat>("join", "near");
    model->Append<nn::Linear>(10, 4);
    model->AppendNamed<nn::PopAdd>("out", "deep");
    return model;
  };
  PlanOptions options = SmallOptions();
  options.mesh = Mesh(/*dp=*/1, static_cast<int>(cuts.size()) + 1);
  options.cuts = std::move(cuts);
  return MakePlan(options, factory, {3}, nn::DType::kF32, nn::Device{}).value();
}

}  // namespace troupe::pipeline

#endif  // TESTS_PIPELINE_PLAN_FIXTURE_H_

// A job with one weight, whose first step shows to what the gradients of its
// ranks were added up.
//
//   JobSpec spec = OneWeightJob({-128.5, -128.5});    // gradients of 257
//   ExpectSum(514, {-128.5, -128.5}, spec);

#ifndef TESTS_ACTORS_JOBS_ONE_WEIGHT_JOB_H_
#define TESTS_ACTORS_JOBS_ONE_WEIGHT_JOB_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/spec/job_spec.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {

// Returns a job with one weight w, which begins as 0, and samples with input 1
// and target t: the gradient of a sample's squared error is 2 (w - t). Each
// rank has one sample; a step has all.
inline JobSpec OneWeightJob(const std::vector<float>& targets) {
  const auto n = static_cast<std::int64_t>(targets.size());
  nn::CachingAllocator allocator;
  nn::Tensor x = nn::Tensor::Empty({n, 1}, nn::DType::kF32, allocator);
  nn::Tensor t = nn::Tensor::Empty({n, 1}, nn::DType::kF32, allocator);
  for (std::int64_t i = 0; i < n; ++i) {
    x.data<float>()[i] = 1;
    t.data<float>()[i] = targets[i];
  }
  JobSpec spec;
  spec.train = *data::MakeInMemoryDataset(x, t, /*num_classes=*/0);
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(1, 1, nn::Linear::Options{/*bias=*/false});
    for (nn::Parameter* parameter : model->Parameters()) {
      parameter->init = nn::Initializer::Constant(0);
    }
    return model;
  };
  spec.loss = [](nn::Context& ctx, const nn::Tensor& y, const nn::Tensor& t) {
    return nn::ops::MeanSquaredError(ctx, y, t);
  };
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.lr = 1.0 / 256;
    return std::make_unique<nn::Sgd>(sgd);
  };
  spec.shuffle = false;
  spec.steps = 2;
  spec.timeout = absl::Seconds(60);
  spec.plan.mesh = pipeline::Mesh(static_cast<int>(n));
  spec.plan.global_batch_size = n;
  return spec;
}

// Expects the first step's gradients to add up to `sum`, by the loss of the
// second step, where w = -lr * sum / count. The losses of other sums in these
// tests differ by at least 0.1.
inline void ExpectSum(double sum, const std::vector<float>& targets,
                      const JobSpec& spec) {
  const double w = -sum / 256 / double(targets.size());
  double loss = 0;
  for (const float t : targets) loss += (w - t) * (w - t);
  EXPECT_NEAR(ReportsOf(spec).losses()[1], loss / double(targets.size()), 0.01)
      << "inline bytes " << spec.plan.inline_bytes;
}

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_JOBS_ONE_WEIGHT_JOB_H_

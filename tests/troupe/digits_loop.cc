#include "tests/troupe/digits_loop.h"

#include "base/status_error.h"
#include "data/registry.h"
#include "gtest/gtest.h"
#include "nn/kernels/device_queues.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

// The dataset is drawn once.
data::DatasetPtr Glyphs() {
  static const data::DatasetPtr* const glyphs = [] {
    data::DatasetOptions options;
    options.kind = "glyphs";
    return new data::DatasetPtr(data::OpenDataset(options)->train);
  }();
  return *glyphs;
}

void RunLoop(Rank& rank, Rule rule, const DigitsOptions& edited,
             DigitsRun* run) {
  const int micro_batches = edited.micro_batches;
  auto model = rank.Place(nn::MakeMlp({784, 24, 10}, {}));
  DDPOptions options = edited.ddp;
  options.first_bucket_mb = 0.001;
  options.bucket_cap_mb = 0.02;
  DDP ddp(model, options);
  std::optional<Optimizer> optimizer;
  if (rule == Rule::kSgd) {
    optimizer.emplace(Sgd(ddp, {/*lr=*/0.02, /*momentum=*/0.9}));
  } else {
    optimizer.emplace(Adam(ddp, nn::AdamWDefaults()));
  }
  if (edited.prepare) edited.prepare(rank, ddp);
  if (edited.step_in_backward) ddp.StepInBackward(*optimizer);
  DataLoader loader(
      rank, Glyphs(),
      {kDigitsBatch / rank.size() / micro_batches, /*shuffle=*/true});
  int step = 0, micro_batch = 0;
  double sum = 0;
  for (auto [x, y] : loader) {
    if (micro_batch == 0) {
      optimizer->ZeroGrad();
      sum = 0;
    }
    const bool last = ++micro_batch == micro_batches;
    Var loss;
    if (last) {
      loss = nn::CrossEntropy(ddp(x.Flatten()), y);
      // A backward with exact_mean begins at a loss.
      const Var root = options.exact_mean ? loss : loss.Mean() / micro_batches;
      root.Backward();
    } else {
      auto unsynced = ddp.NoSync();
      loss = nn::CrossEntropy(ddp(x.Flatten()), y);
      (loss.Mean() / micro_batches).Backward();
    }
    AllReduce(loss, ReduceOp::kAvg);
    sum += loss.item();
    if (!last) continue;
    micro_batch = 0;
    optimizer->Step();
    if (rank.number() == 0) run->losses.push_back(sum / micro_batches);
    if (++step == kDigitsSteps) break;
  }
  const std::vector<float> values = ValuesOn(rank, ddp.Parameters()[0]->value);
  if (rank.number() == 0) run->parameters = values;
}

}  // namespace

Program DigitsLoop(Rule rule, DigitsRun* run, const DigitsOptions& options) {
  return [=](Rank& rank) { RunLoop(rank, rule, options, run); };
}

actors::JobSpec DigitsJob(Rule rule, int ranks,
                          std::optional<nn::DType> reduction_dtype) {
  actors::JobSpec spec;
  spec.train = Glyphs();
  spec.model = [] { return nn::MakeMlp({784, 24, 10}, {}); };
  spec.loss = nn::ops::CrossEntropyLoss();
  if (rule == Rule::kSgd) {
    spec.optimizer = nn::SgdOptions{0.02, 0.9};
  } else {
    spec.optimizer = nn::AdamWDefaults();
  }
  spec.plan.mesh = pipeline::Mesh(ranks);
  spec.plan.reduction_dtype = reduction_dtype;
  spec.plan.global_batch_size = kDigitsBatch;
  spec.steps = kDigitsSteps;
  return spec;
}

std::vector<double> DigitsJobLosses(const actors::JobSpec& spec) {
  struct Keep : actors::JobObserver {
    void OnSteps(absl::Span<const actors::StepReport> steps) override {
      for (const auto& step : steps) losses.push_back(step.loss);
    }
    std::vector<double> losses;
  } keep;
  const auto result = actors::RunJob(spec, &keep);
  EXPECT_TRUE(result.ok()) << result.status();
  return keep.losses;
}

std::vector<float> ValuesOn(Rank& rank, const Tensor& tensor) {
  nn::Kernels& kernels = rank.kernels();
  const Tensor host =
      base::OrThrow(nn::CopyToHost(kernels, nn::Queue::kCompute, tensor));
  base::OrThrow(
      nn::Synchronize(kernels, nn::Record(kernels, nn::Queue::kCompute)));
  const auto values = host.span<float>();
  return {values.begin(), values.end()};
}

}  // namespace troupe

#include "tests/actors/jobs/bits/bit_jobs.h"

#include <memory>

#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/models/resnet.h"
#include "nn/models/vit.h"
#include "nn/optim/adam.h"
#include "nn/optim/lr_schedule.h"
#include "nn/optim/sgd.h"
#include "tests/actors/sim/deep_models.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kSteps = 3;
// Sizes of the samples of SmallGpt() and of SmallResNet18().
constexpr std::int64_t kTokens = 4, kVocabulary = 7;
constexpr std::int64_t kSide = 8, kClasses = 5;

// Sets what a job would otherwise choose for the machine, and small buckets.
JobSpec Pinned(JobSpec spec) {
  spec.steps = kSteps;
  spec.plan.inline_bytes = 0;
  spec.plan.buckets.first_bucket_bytes = 2 << 10;
  spec.plan.buckets.bucket_bytes = 8 << 10;
  UseOwnLoops(base::CpuIsa::kPlain, spec);
  return spec;
}

OptimizerFactory AdamW(double ema_decay) {
  return [ema_decay] {
    nn::AdamOptions adam = nn::AdamWDefaults();
    adam.lr = 0.01;
    adam.common.ema_decay = ema_decay;
    adam.common.groups = {nn::NoDecayGroup()};
    adam.common.schedule = nn::LrSchedule::Linear(/*steps=*/8);
    return std::make_unique<nn::Adam>(adam);
  };
}

}  // namespace

void UseOwnLoops(base::CpuIsa isa, JobSpec& spec) {
  spec.kernels = [isa]() -> absl::StatusOr<std::unique_ptr<nn::Kernels>> {
    nn::CpuKernelOptions options;
    options.isa = isa;
    options.onednn = false;
    options.bf16 = false;
    return nn::CreateCpuKernels(options);
  };
}

void ClipByNorm(JobSpec& spec) {
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.lr = 0.1;
    sgd.momentum = 0.9;
    sgd.nesterov = true;
    sgd.common.clip_grad_norm = 0.5;
    return std::make_unique<nn::Sgd>(sgd);
  };
}

void TrainInBF16(JobSpec& spec) {
  UseDType(nn::DType::kBF16, spec);
  spec.plan.grad_dtype = nn::DType::kF32;
  spec.optimizer = [] {
    nn::AdamOptions adam = nn::AdamWDefaults();
    adam.lr = 0.01;
    adam.common.f32_master = true;
    adam.common.ema_decay = 0.9;
    return std::make_unique<nn::Adam>(adam);
  };
}

JobSpec LeNetJob(int dp, int pp, std::int64_t steps) {
  JobSpec spec = Pinned(TinyCnnJob(dp, steps));
  spec.steps = steps;
  spec.plan.buckets.first_bucket_bytes = 4 << 10;
  spec.plan.buckets.bucket_bytes = 32 << 10;
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  spec.plan.global_batch_size = 24 * dp;
  spec.plan.micro_batch_size = 8;
  if (pp == 2) spec.plan.cuts = {3};
  return spec;
}

JobSpec ResNetJob(int dp, int pp) {
  JobSpec spec =
      Pinned(SmallResNet18().Job(pipeline::Mesh(dp, pp), /*micro_batches=*/2));
  if (pp == 2) spec.plan.cuts = {"layer2.1"};
  return spec;
}

JobSpec VitJob(int dp, int pp) {
  JobSpec spec =
      Pinned(SmallResNet18().Job(pipeline::Mesh(dp, pp), /*micro_batches=*/4));
  spec.model = [] {
    nn::VitOptions options;
    options.depth = 2;
    options.heads = 2;
    options.width = 16;
    options.image_size = kSide;
    options.patch_size = 4;
    options.num_classes = kClasses;
    return *nn::MakeVit(options);
  };
  spec.optimizer = AdamW(/*ema_decay=*/0);
  if (pp == 2) spec.plan.cuts = {"blocks.1"};
  return spec;
}

nn::Gpt2Options SmallGptOptions() {
  nn::Gpt2Options options;
  options.layers = 4;
  options.heads = 2;
  options.width = 16;
  options.context = kTokens;
  options.vocab_size = kVocabulary;
  return options;
}

JobSpec GptJob(int dp, int pp, const nn::Gpt2Options& options) {
  JobSpec spec =
      Pinned(SmallGpt().Job(pipeline::Mesh(dp, pp), /*micro_batches=*/4));
  spec.model = [options] { return *nn::MakeGpt2(options); };
  spec.optimizer = AdamW(/*ema_decay=*/0.9);
  if (pp == 2) spec.plan.cuts = {"h.2"};
  return spec;
}

}  // namespace troupe::actors

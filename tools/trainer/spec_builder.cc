#include "tools/trainer/spec_builder.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "tools/trainer/model_builder.h"

namespace troupe::tools {
namespace {

nn::Tensor CrossEntropy(nn::Context& ctx, const nn::Tensor& logits,
                        const nn::Tensor& targets) {
  return nn::ops::SoftmaxCrossEntropy(ctx, logits, targets);
}

pipeline::PlanOptions PlanOptionsOf(const TrainerConfig& config) {
  pipeline::PlanOptions plan;
  plan.mesh = pipeline::Mesh(static_cast<int>(config.mesh.dp),
                             static_cast<int>(config.mesh.pp));
  plan.cuts.assign(config.mesh.cuts.begin(), config.mesh.cuts.end());
  plan.global_batch_size = config.train.global_batch_size;
  plan.micro_batch_size = config.train.micro_batch_size;
  plan.buckets.first_bucket_bytes = config.comm.first_bucket_bytes;
  plan.buckets.bucket_bytes = config.comm.bucket_bytes;
  plan.inline_bytes = config.comm.inline_bytes;
  plan.fuse_updates = config.comm.fuse_updates;
  plan.threads_per_rank = static_cast<int>(config.train.threads_per_rank);
  return plan;
}

}  // namespace

absl::StatusOr<actors::JobSpec> BuildSpec(const LoadedConfig& loaded,
                                          const data::DataSplits& splits,
                                          base::FileSystem& files) {
  const TrainerConfig& config = loaded.config;
  const TrainConfig& train = config.train;
  if (train.global_batch_size > splits.train->size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        loaded.Where("train.global_batch_size"), ": train.global_batch_size = ",
        train.global_batch_size, " is more than the ", splits.train->size(),
        " training samples; use at most that"));
  }
  actors::JobSpec spec;
  // CheckConfig() has made the same model before.
  spec.model = [config] { return MakeModel(config).value(); };
  spec.loss = splits.train->spec().is_classification()
                  ? nn::ops::LossFn(CrossEntropy)
                  : nn::ops::LossFn(nn::ops::MeanSquaredError);
  spec.optimizer = [options = SgdOptionsOf(config.optimizer)] {
    return std::make_unique<nn::Sgd>(options);
  };
  TROUPE_ASSIGN_OR_RETURN(spec.device, nn::Device::Parse(train.device));
  spec.train = splits.train;
  spec.test = splits.test;
  spec.data = data::DescribeData(DatasetOptionsOf(config.data));
  spec.seed = static_cast<std::uint64_t>(train.seed);
  spec.prefetch_steps = static_cast<int>(config.data.prefetch);
  spec.plan = PlanOptionsOf(config);
  spec.steps = train.steps;
  spec.epochs = train.steps > 0 ? 0 : train.epochs;
  spec.eval_every = train.eval_every;
  spec.eval_each_epoch = train.eval_every == 0;
  spec.stop_on_nan = train.stop_on_nan;
  spec.checkpoint.dir = config.checkpoint.dir;
  spec.checkpoint.every = config.checkpoint.every;
  spec.checkpoint.keep = static_cast<int>(config.checkpoint.keep);
  spec.checkpoint.resume = config.checkpoint.resume;
  spec.checkpoint.files = &files;
  spec.timeout = absl::Seconds(config.comm.timeout_s);
  return spec;
}

}  // namespace troupe::tools

#include "tools/trainer/spec_builder.h"

#include <memory>
#include <utility>

#include "base/check.h"
#include "data/sampler.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/model_builder.h"

namespace troupe::tools {
namespace {

nn::Tensor CrossEntropy(nn::Context& ctx, const nn::Tensor& logits,
                        const nn::Tensor& targets) {
  return nn::ops::SoftmaxCrossEntropy(ctx, logits, targets);
}

}  // namespace

absl::StatusOr<actors::JobSpec> BuildSpec(const LoadedConfig& loaded,
                                          const data::DataSplits& splits,
                                          base::FileSystem& files) {
  const TrainerConfig& config = loaded.config;
  actors::JobSpec spec = config.job;
  data::SamplerOptions sampler;
  sampler.dataset_size = splits.train->size();
  sampler.global_batch_size = spec.plan.global_batch_size;
  TROUPE_RETURN_IF_ERROR(AtKeys(loaded, sampler.Validate()));
  // CheckConfig() has made the same model before.
  spec.model = [config] { return MakeModel(config).value(); };
  spec.loss = splits.train->spec().is_classification()
                  ? nn::ops::LossFn(CrossEntropy)
                  : nn::ops::LossFn(nn::ops::MeanSquaredError);
  spec.optimizer = [options = config.optimizer.sgd] {
    return std::make_unique<nn::Sgd>(options);
  };
  spec.train = splits.train;
  spec.test = splits.test;
  spec.data = data::DescribeData(config.data);
  spec.eval_each_epoch = spec.eval_every == 0;
  spec.checkpoint.files = &files;
  return spec;
}

}  // namespace troupe::tools

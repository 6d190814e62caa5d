// Defines an MLP-Mixer (Tolstikhin et al. 2021, arXiv:2105.01601), trains it on
// drawn digits with two ranks, and exports it to PyTorch.
//
//   bazel build //examples/own_model
//   bazel-bin/examples/own_model/own_model 300    # trains, saves, exports
//   bazel-bin/examples/own_model/own_model 600    # continues from step 300
//   python3 examples/own_model/check.py           # the same model in PyTorch
//
// Writes checkpoints to checkpoints/mixer, weights to mixer.safetensors, and
// the model's outputs for four digits to mixer_answers.safetensors.
//
// Shapes: N samples, T tokens (patches of 7x7 pixels), D features of a token.

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "absl/status/status.h"
#include "actors/inference/export_model.h"
#include "actors/job.h"
#include "base/check.h"
#include "data/registry.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/lambda.h"
#include "nn/modules/linear.h"
#include "nn/modules/norm.h"
#include "nn/modules/sequential.h"
#include "nn/ops/activation.h"
#include "nn/ops/add.h"
#include "nn/ops/permute.h"
#include "nn/ops/reduce.h"
#include "nn/ops/reshape.h"
#include "nn/optim/adam.h"

namespace {

using namespace troupe;  // An example may be short.

constexpr int kTokens = 16, kWidth = 64;

// [N, T, D] -> [N, T, D]: mixes tokens, then features. Adding a module declares
// its parameters; their names are those of check.py.
class MixerBlock : public nn::Module {
 public:
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    using nn::ops::Add, nn::ops::Gelu, nn::ops::Transpose;
    nn::Tensor y = Transpose(ctx, norm1_(ctx, x), 1, 2);  // [N, D, T]
    y = token2_(ctx, Gelu(ctx, token1_(ctx, y)));
    const nn::Tensor z = Add(ctx, x, Transpose(ctx, y, 1, 2));
    y = channel2_(ctx, Gelu(ctx, channel1_(ctx, norm2_(ctx, z))));
    return Add(ctx, z, y);
  }

 private:
  nn::Module& norm1_ = Add<nn::LayerNorm>("norm1", kWidth);
  nn::Module& token1_ = Add<nn::Linear>("token1", kTokens, 4 * kTokens);
  nn::Module& token2_ = Add<nn::Linear>("token2", 4 * kTokens, kTokens);
  nn::Module& norm2_ = Add<nn::LayerNorm>("norm2", kWidth);
  nn::Module& channel1_ = Add<nn::Linear>("channel1", kWidth, 4 * kWidth);
  nn::Module& channel2_ = Add<nn::Linear>("channel2", 4 * kWidth, kWidth);
};

// [N, 28, 28, 1] -> [N, 10]. A Sequential, so that it can be cut into stages.
std::unique_ptr<nn::Module> MakeMixer() {
  auto model = std::make_unique<nn::Sequential>();
  model->Append<nn::Conv2d>(1, kWidth, nn::Window2d{7, 7, 7, 7});
  model->Append<nn::Lambda>([](nn::Context& ctx, const nn::Tensor& x) {
    return nn::ops::Reshape(ctx, x, {x.dim(0), kTokens, kWidth});
  });
  for (int i = 0; i < 4; ++i) model->Append<MixerBlock>();
  model->Append<nn::LayerNorm>(kWidth);
  model->Append<nn::Lambda>([](nn::Context& ctx, const nn::Tensor& x) {
    return nn::ops::Mean(ctx, x, {1});
  });
  model->Append<nn::Linear>(kWidth, 10);
  return model;
}

// Trains up to step `steps`, from the last checkpoint if there is one.
absl::Status Run(int steps) {
  TROUPE_ASSIGN_OR_RETURN(const data::DataSplits digits, data::OpenDataset({}));
  actors::JobSpec spec;
  spec.train = digits.train;
  spec.test = digits.test;
  spec.model = MakeMixer;
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = nn::AdamOptions();
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2);
  spec.plan.global_batch_size = 64;
  spec.steps = steps;
  spec.checkpoint.dir = "checkpoints/mixer";
  spec.checkpoint.resume = true;
  TROUPE_ASSIGN_OR_RETURN(const auto result, actors::RunJob(spec));
  std::printf("test accuracy %.3f\n", result.evaluation.accuracy);
  TROUPE_RETURN_IF_ERROR(ExportModel(spec, "mixer.safetensors"));
  return ExportAnswers(spec, /*samples=*/4, "mixer_answers.safetensors");
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? std::atoi(argv[1]) : 300);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

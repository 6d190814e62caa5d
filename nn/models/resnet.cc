#include "nn/models/resnet.h"

#include <array>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/pool2d.h"

namespace troupe::nn {
namespace {

Conv2d::Options WithoutBias() {
  Conv2d::Options options;
  options.bias = false;
  return options;
}

BatchNorm2d::Options ThenRelu() {
  BatchNorm2d::Options options;
  options.relu = true;
  return options;
}

Window2d Window(std::int64_t kernel, std::int64_t stride) {
  const std::int64_t pad = kernel / 2;
  return {kernel, kernel, stride, stride, pad, pad};
}

// A block with its shortcut: x itself, or a projection if its shape changes.
class ResidualBlock : public Module {
 protected:
  void AddDownsample(std::int64_t in, std::int64_t out, std::int64_t stride) {
    if (in == out && stride == 1) return;
    downsample_ = &Add<Sequential>("downsample");
    downsample_->Append<Conv2d>(in, out, Window(1, stride), WithoutBias());
    downsample_->Append<BatchNorm2d>(out);
  }
  // Returns relu(norm(y) + shortcut), in one pass.
  Tensor Join(Context& ctx, BatchNorm2d& norm, const Tensor& x,
              const Tensor& y) {
    const Tensor past = downsample_ != nullptr ? (*downsample_)(ctx, x) : x;
    const TensorList joined = norm.CallMany(ctx, {y, past});
    return ctx.ok() ? joined[0] : Tensor();
  }

 private:
  Sequential* downsample_ = nullptr;
};

// The block of depths 18 and 34.
class BasicBlock : public ResidualBlock {
 public:
  static constexpr std::int64_t kExpansion = 1;

  BasicBlock(std::int64_t in, std::int64_t width, std::int64_t stride)
      : conv1_(
            Add<Conv2d>("conv1", in, width, Window(3, stride), WithoutBias())),
        bn1_(Add<BatchNorm2d>("bn1", width, ThenRelu())),
        conv2_(Add<Conv2d>("conv2", width, width, Window(3, 1), WithoutBias())),
        bn2_(Add<BatchNorm2d>("bn2", width, ThenRelu())) {
    AddDownsample(in, width, stride);
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    const Tensor y = bn1_(ctx, conv1_(ctx, x));
    return Join(ctx, bn2_, x, conv2_(ctx, y));
  }

 private:
  Conv2d& conv1_;
  BatchNorm2d& bn1_;
  Conv2d& conv2_;
  BatchNorm2d& bn2_;
};

// The block of depths 50 and 101; the 3x3 convolution has the stride, as in
// torchvision.
class Bottleneck : public ResidualBlock {
 public:
  static constexpr std::int64_t kExpansion = 4;

  Bottleneck(std::int64_t in, std::int64_t width, std::int64_t stride)
      : conv1_(Add<Conv2d>("conv1", in, width, Window(1, 1), WithoutBias())),
        bn1_(Add<BatchNorm2d>("bn1", width, ThenRelu())),
        conv2_(Add<Conv2d>("conv2", width, width, Window(3, stride),
                           WithoutBias())),
        bn2_(Add<BatchNorm2d>("bn2", width, ThenRelu())),
        conv3_(Add<Conv2d>("conv3", width, width * kExpansion, Window(1, 1),
                           WithoutBias())),
        bn3_(Add<BatchNorm2d>("bn3", width * kExpansion, ThenRelu())) {
    AddDownsample(in, width * kExpansion, stride);
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    const Tensor y = bn1_(ctx, conv1_(ctx, x));
    const Tensor z = bn2_(ctx, conv2_(ctx, y));
    return Join(ctx, bn3_, x, conv3_(ctx, z));
  }

 private:
  Conv2d& conv1_;
  BatchNorm2d& bn1_;
  Conv2d& conv2_;
  BatchNorm2d& bn2_;
  Conv2d& conv3_;
  BatchNorm2d& bn3_;
};

// Returns the numbers of blocks in layer1 to layer4 (table 1 of the paper);
// none for other depths.
std::optional<std::array<int, 4>> BlocksOf(int depth) {
  switch (depth) {
    case 18:
      return {{2, 2, 2, 2}};
    case 34:
    case 50:
      return {{3, 4, 6, 3}};
    case 101:
      return {{3, 4, 23, 3}};
    default:
      return std::nullopt;
  }
}

void AppendStem(const ResNetOptions& options, Sequential& model) {
  const bool is_cifar = options.stem == ResNetStem::kCifar;
  model.AppendNamed<Conv2d>("conv1", options.in_channels, options.width,
                            is_cifar ? Window(3, 1) : Window(7, 2),
                            WithoutBias());
  model.AppendNamed<BatchNorm2d>("bn1", options.width, ThenRelu());
  if (is_cifar) return;
  model.AppendNamed<MaxPool2d>("maxpool", /*kernel=*/3, /*stride=*/2,
                               /*padding=*/1);
}

// Returns the number of output channels.
template <typename B>
std::int64_t AppendLayers(const std::array<int, 4>& blocks,
                          const ResNetOptions& options, Sequential& model) {
  std::int64_t in = options.width;
  for (int i = 0; i < 4; ++i) {
    auto& layer = model.AppendNamed<Sequential>(absl::StrCat("layer", i + 1));
    const std::int64_t width = options.width << i;
    for (int block = 0; block < blocks[i]; ++block) {
      const std::int64_t stride = block == 0 && i > 0 ? 2 : 1;
      layer.Append<B>(in, width, stride);
      in = width * B::kExpansion;
    }
  }
  return in;
}

// Sets Kaiming's normal by fan-out for convolutions; zeros in the last batch
// norm of each block if the options ask for it.
void SetResNetInitialValues(int depth, const ResNetOptions& options,
                            Sequential& model) {
  const char* const last = depth < 50 ? ".bn2.weight" : ".bn3.weight";
  for (Parameter* p : model.Parameters()) {
    if (p->shape.rank() == 4) {
      p->init = Initializer::KaimingNormal(p->shape, Fan::kOut);
    } else if (options.zero_init_residual && absl::EndsWith(p->name, last)) {
      p->init = Initializer::Constant(0);
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sequential>> MakeResNet(
    int depth, const ResNetOptions& options) {
  const auto blocks = BlocksOf(depth);
  if (!blocks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no ResNet-", depth, "; there are 18, 34, 50 and 101"));
  }
  auto model = std::make_unique<Sequential>();
  AppendStem(options, *model);
  const std::int64_t features =
      depth < 50 ? AppendLayers<BasicBlock>(*blocks, options, *model)
                 : AppendLayers<Bottleneck>(*blocks, options, *model);
  model->AppendNamed<AdaptiveAvgPool2d>("avgpool", 1);
  model->AppendNamed<Flatten>("flatten");
  model->AppendNamed<Linear>("fc", features, options.num_classes);
  SetResNetInitialValues(depth, options, *model);
  return model;
}

}  // namespace troupe::nn

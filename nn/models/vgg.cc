#include "nn/models/vgg.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/dropout.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/pool2d.h"
#include "nn/modules/relu.h"

namespace troupe::nn {
namespace {

constexpr int kPool = 0;
constexpr std::int64_t kPooledSide = 7;

// Returns the channels of the convolutions as multiples of the first one's, and
// poolings: columns A and D of the paper's table 1. Empty for other depths.
std::vector<int> PlanOf(int depth) {
  switch (depth) {
    case 11:
      return {1, kPool, 2, kPool, 4, 4, kPool, 8, 8, kPool, 8, 8, kPool};
    case 16:
      return {1,     1, kPool, 2, 2,     kPool, 4, 4, 4,
              kPool, 8, 8,     8, kPool, 8,     8, 8, kPool};
    default:
      return {};
  }
}

// Returns the number of output channels.
std::int64_t AppendFeatures(const std::vector<int>& plan,
                            const VggOptions& options, Sequential& features) {
  std::int64_t in = options.in_channels;
  for (int step : plan) {
    if (step == kPool) {
      features.Append<MaxPool2d>(2);
      continue;
    }
    const std::int64_t out = step * options.width;
    features.Append<Conv2d>(in, out, Window2d{3, 3, 1, 1, 1, 1});
    if (options.batch_norm) features.Append<BatchNorm2d>(out);
    features.Append<ReLU>();
    in = out;
  }
  return in;
}

void AppendClassifier(std::int64_t in, const VggOptions& options,
                      Sequential& classifier) {
  classifier.Append<Linear>(in, options.hidden);
  classifier.Append<ReLU>();
  classifier.Append<Dropout>(options.dropout);
  classifier.Append<Linear>(options.hidden, options.hidden);
  classifier.Append<ReLU>();
  classifier.Append<Dropout>(options.dropout);
  classifier.Append<Linear>(options.hidden, options.num_classes);
}

// Sets Kaiming's normal by fan-out for convolutions, N(0, 0.01^2) for linear
// layers, zeros for biases.
void SetVggInitialValues(Sequential& model) {
  for (Parameter* p : model.Parameters()) {
    if (p->shape.rank() == 4) {
      p->init = Initializer::KaimingNormal(p->shape, Fan::kOut);
    } else if (p->shape.rank() == 2) {
      p->init = Initializer::Normal(0, 0.01);
    } else if (absl::EndsWith(p->name, ".bias")) {
      p->init = Initializer::Constant(0);
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sequential>> MakeVgg(int depth,
                                                    const VggOptions& options) {
  const std::vector<int> plan = PlanOf(depth);
  if (plan.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no VGG-", depth, "; there are 11 and 16"));
  }
  auto model = std::make_unique<Sequential>();
  const std::int64_t channels =
      AppendFeatures(plan, options, model->AppendNamed<Sequential>("features"));
  model->AppendNamed<AdaptiveAvgPool2d>("avgpool", kPooledSide);
  model->AppendNamed<Flatten>("flatten");
  AppendClassifier(channels * kPooledSide * kPooledSide, options,
                   model->AppendNamed<Sequential>("classifier"));
  SetVggInitialValues(*model);
  return model;
}

}  // namespace troupe::nn

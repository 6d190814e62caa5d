#include "nn/models/models.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/pool2d.h"
#include "nn/modules/relu.h"

namespace troupe::nn {

std::unique_ptr<Sequential> MakeMlp(const std::vector<std::int64_t>& widths,
                                    const ModelOptions& options) {
  TROUPE_CHECK(widths.size() >= 2, "an MLP has an input and an output width");
  const Linear::Options linear = {options.bias, options.dtype};
  auto model = std::make_unique<Sequential>();
  model->Append<Flatten>();
  for (std::size_t i = 1; i < widths.size(); ++i) {
    if (i > 1) model->Append<ReLU>();
    model->Append<Linear>(widths[i - 1], widths[i], linear);
  }
  return model;
}

absl::StatusOr<std::unique_ptr<Sequential>> MakeLeNet(
    const Shape& image, std::int64_t num_classes, const ModelOptions& options) {
  if (image.rank() != 3 || image[0] < 16 || image[1] < 16) {
    return absl::InvalidArgumentError(
        absl::StrCat("lenet takes images (H, W, C) of at least 16x16, got ",
                     image.ToString(), "; use larger ones, or an MLP"));
  }
  Conv2d::Options conv;
  conv.bias = options.bias;
  conv.dtype = options.dtype;
  const Linear::Options linear = {options.bias, options.dtype};
  const Window2d five{5, 5};
  const std::int64_t h = ((image[0] - 4) / 2 - 4) / 2;
  const std::int64_t w = ((image[1] - 4) / 2 - 4) / 2;
  auto model = std::make_unique<Sequential>();
  model->Append<Conv2d>(image[2], 6, five, conv);
  model->Append<ReLU>();
  model->Append<MaxPool2d>(2);
  model->Append<Conv2d>(6, 16, five, conv);
  model->Append<ReLU>();
  model->Append<MaxPool2d>(2);
  model->Append<Flatten>();
  model->Append<Linear>(16 * h * w, 120, linear);
  model->Append<ReLU>();
  model->Append<Linear>(120, 84, linear);
  model->Append<ReLU>();
  model->Append<Linear>(84, num_classes, linear);
  return model;
}

std::unique_ptr<Sequential> MakeLinearModel(std::int64_t features,
                                            std::int64_t outputs,
                                            const ModelOptions& options) {
  return MakeMlp({features, outputs}, options);
}

}  // namespace troupe::nn

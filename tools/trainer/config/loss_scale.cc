#include "tools/trainer/config/loss_scale.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nn/tensor/dtype.h"

namespace troupe::tools {
namespace {

constexpr char kAuto[] = "auto";
constexpr char kDynamic[] = "dynamic";

}  // namespace

absl::Status CheckLossScale(const std::string& scale) {
  if (scale == kAuto || scale == kDynamic) return absl::OkStatus();
  double number = 0;
  const bool is_number = absl::SimpleAtod(scale, &number);
  if (is_number && number > 0 && std::isfinite(number)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "must be \"", kAuto, "\", \"", kDynamic, "\" or a number above 0"));
}

void FillLossScale(TrainerConfig& config) {
  const LossScaleConfig& from = config.loss_scale;
  const std::string& scale = from.scale.text;
  const bool is_f16 = config.job.dtype == nn::DType::kF16;
  config.job.loss_scale = 1;
  config.job.dynamic_loss_scale.reset();
  if (scale == kDynamic || (scale == kAuto && is_f16)) {
    config.job.loss_scale = from.init;
    config.job.dynamic_loss_scale = from.rule;
  } else if (scale != kAuto) {
    static_cast<void>(absl::SimpleAtod(scale, &config.job.loss_scale));
  }
}

}  // namespace troupe::tools

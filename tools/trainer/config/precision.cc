#include "tools/trainer/config/precision.h"

#include <string>

#include "base/check.h"
#include "tools/trainer/config/loss_scale.h"

namespace troupe::tools {

void FillPrecision(TrainerConfig& config) {
  if (IsPrecisionOpen(config)) {
    config.job.dtype = nn::DType::kF32;
  } else {
    const absl::StatusOr<nn::DType> dtype = nn::ParseDType(config.precision);
    TROUPE_CHECK(dtype.ok(), "the table of keys lets no other word pass");
    config.job.dtype = *dtype;
  }
  FillLossScale(config);
}

bool IsPrecisionOpen(const TrainerConfig& config) {
  return config.precision == kAutoPrecision;
}

void SetPrecision(nn::DType dtype, TrainerConfig& config) {
  config.precision = std::string(nn::DTypeName(dtype));
  FillPrecision(config);
}

}  // namespace troupe::tools

// The precision of a job: train.precision, and the settings that follow from
// it.
//
//   FillPrecision(config);                          // when all keys are set
//   config.job.dtype;                               // f32, where it is open
//   if (IsPrecisionOpen(config)) {
//     SetPrecision(nn::DType::kBF16, config);       // as if the file said it
//   }

#ifndef TOOLS_TRAINER_CONFIG_PRECISION_H_
#define TOOLS_TRAINER_CONFIG_PRECISION_H_

#include "nn/tensor/dtype.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// Sets the dtypes of config.job from the keys.
void FillPrecision(TrainerConfig& config);

// Whether the job chooses its precision by measuring.
bool IsPrecisionOpen(const TrainerConfig& config);

void SetPrecision(nn::DType dtype, TrainerConfig& config);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_PRECISION_H_

// What a job computes in: train.precision, and what follows from it.
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

// Puts into config.job what the keys mean.
void FillPrecision(TrainerConfig& config);

// Whether the job measures and chooses.
bool IsPrecisionOpen(const TrainerConfig& config);

void SetPrecision(nn::DType dtype, TrainerConfig& config);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_PRECISION_H_

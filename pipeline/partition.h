// Cuts a model into stages: the contiguous parts that a pipeline's ranks hold.
//
//   auto last = BuildStage(factory, /*cuts=*/{3}, /*stage=*/1);  // from 3 on
//
// Cuts are between children of a Sequential; without cuts any Module will do.

#ifndef PIPELINE_PARTITION_H_
#define PIPELINE_PARTITION_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/modules/module.h"

namespace troupe::pipeline {

// Makes the model and keeps stage `stage` of `cuts.size() + 1`.
//   kInvalidArgument: cuts do not fit, or the model is no Sequential.
absl::StatusOr<std::unique_ptr<nn::Module>> BuildStage(
    const nn::ModelFactory& factory, const std::vector<int>& cuts, int stage);

}  // namespace troupe::pipeline

#endif  // PIPELINE_PARTITION_H_

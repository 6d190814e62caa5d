// What the gpu_step benchmark trains, as settings of the trainer's own
// configuration; torch_step.py has the same models.
//
//   StepOptions options;
//   options.device = "cuda:0";
//   options.bf16 = true;
//   TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
//                           MakeStepJob("toy_mlp", options));
//
//     toy_mlp     10-10-5, ReLU; squared error; batch 20
//     toy_cnn     LeNet on 32x32x3, 10 classes; cross entropy; batch 16
//     mnist_mlp   784-512-512-10, ReLU; cross entropy; batch 64
//
// Samples are random numbers in memory. Plain SGD on one rank.

#ifndef TOOLS_BENCH_GPU_STEP_GPU_STEP_CASE_H_
#define TOOLS_BENCH_GPU_STEP_GPU_STEP_CASE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/job_spec.h"

namespace troupe::bench {

std::vector<std::string> StepCaseNames();

struct StepOptions {
  std::string device = "cpu:0";  // as train.device has it
  bool bf16 = false;             // parameters, samples and all between
  // Whether steps are captured in CUDA graphs; unset: the trainer's default.
  // Without meaning where HasGraphsKey() is false.
  std::optional<bool> graphs;
};

// Whether the trainer's configuration has a key for it.
bool HasGraphsKey();

// A job of the case without an end in sight, and without evaluation.
//   kInvalidArgument: no such case, or no such device.
absl::StatusOr<actors::JobSpec> MakeStepJob(const std::string& name,
                                            const StepOptions& options);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_GPU_STEP_GPU_STEP_CASE_H_

// What the gpu_step benchmark trains, as settings of the trainer's own
// configuration; torch_step.py has the same models.
//
//   StepOptions options;
//   options.device = "cuda:0";
//   options.bf16 = true;
//   TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
//                           MakeStepJob("toy_mlp", options));
//
// The cases:
//
//     toy_mlp     10-10-5, ReLU; squared error; batch 20
//     toy_cnn     LeNet on 32x32x3, 10 classes; cross entropy; batch 16
//     mnist_mlp   784-512-512-10, ReLU; cross entropy; batch 64
//
// Samples are random numbers in memory. Plain SGD on one rank.

#ifndef TOOLS_BENCH_GPU_STEP_GPU_STEP_CASE_H_
#define TOOLS_BENCH_GPU_STEP_GPU_STEP_CASE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/job_spec.h"
#include "nn/kernels/kernel_choices.h"

namespace troupe::bench {

std::vector<std::string> StepCaseNames();

struct StepOptions {
  std::string device = "cpu:0";      // as train.device has it
  bool bf16 = false;                 // parameters, samples and all between
  std::string cuda_graphs = "auto";  // as train.cuda_graphs has it
  // Algorithms that were measured before; null: each job measures its own.
  std::shared_ptr<nn::KernelChoices> choices;
};

// A job of the case without an end in sight, and without evaluation.
//   kInvalidArgument: no such case, or no such device.
absl::StatusOr<actors::JobSpec> MakeStepJob(const std::string& name,
                                            const StepOptions& options);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_GPU_STEP_GPU_STEP_CASE_H_

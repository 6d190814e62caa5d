// One model of tools/golden/parity.py: its weights, one batch, and PyTorch's
// results in f64. Measures the errors of a kernel set relative to those.
//
//   TROUPE_ASSIGN_OR_RETURN(const ParityCase parity,
//                           ParityCase::Open(files, "folder/resnet18"));
//   TROUPE_ASSIGN_OR_RETURN(const ParityErrors ours,
//                           parity.Train(nn::DType::kF32, *kernels));
//   Show(ours.output, parity.torch_f32().output);
//
// The folder has two files, which are not trusted (nn/serialize/safetensors.h):
//     weights.safetensors  PyTorch's state_dict, imported strictly
//     case.safetensors     x, labels; output and "gradients/<parameter>" of the
//                          first step; losses [steps + 1], of each step and
//                          after the last; all f64 (tokens and labels: i64)
// The metadata "spec" of the latter is a JSON object: name, model, optimizer
// (model_spec.h), torch (its version), and f32, PyTorch's own errors in f32:
// output, gradients by parameter, and all losses.
//
// Errors name the file.

#ifndef TOOLS_GOLDEN_PARITY_CASE_H_
#define TOOLS_GOLDEN_PARITY_CASE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "nn/kernels/kernels.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/weight_file.h"
#include "tools/golden/model_run.h"

namespace troupe::golden {

struct NamedError {
  std::string name;
  double error = 0;
};

// Errors of a training relative to PyTorch's in f64. The error of a number that
// is not finite is infinite.
struct ParityErrors {
  double output = 0;                  // ||a - b|| / ||b||
  double loss = 0;                    // |a - b| / |b|, in the first step
  std::vector<NamedError> gradients;  // same norm; in the model's order
  double losses = 0;                  // the largest |a - b| of all steps
};

class ParityCase {
 public:
  // Reads both files.
  //   kInvalidArgument, kDataLoss: a file is damaged or incomplete.
  static absl::StatusOr<ParityCase> Open(base::FileSystem& files,
                                         const std::string& folder);

  const std::string& name() const { return name_; }
  const std::string& torch_version() const { return torch_version_; }
  // Returns PyTorch's own errors in f32.
  const ParityErrors& torch_f32() const { return torch_f32_; }

  // Runs the same training as PyTorch. CHECK-fails unless `dtype` is f32 or
  // f64.
  //   kInvalidArgument: the weights are of another model; lists differences.
  absl::StatusOr<ParityErrors> Train(nn::DType dtype,
                                     nn::Kernels& kernels) const;

 private:
  ParityCase(nn::WeightFile weights, nn::SafetensorsFile golden)
      : weights_(std::move(weights)), golden_(std::move(golden)) {}

  absl::Status ReadSpec();
  absl::Status ReadTorchF32(const nlohmann::json& f32);
  absl::Status Import(ModelRun& run) const;
  absl::StatusOr<nn::Tensor> ReadInput(nn::DType dtype,
                                       nn::Allocator& allocator) const;
  absl::StatusOr<std::vector<double>> ReadLosses() const;
  // Returns the error of `got` / divisor from the file's tensor `name`.
  absl::StatusOr<double> ErrorOf(const nn::Tensor& got, double divisor,
                                 absl::string_view name) const;
  absl::Status CompareFirst(const ModelRun& run, const ModelRun::Batch& batch,
                            ParityErrors& errors) const;

  nn::WeightFile weights_;
  nn::SafetensorsFile golden_;
  std::string name_, torch_version_;
  nlohmann::json model_, optimizer_;
  std::vector<double> losses_;  // PyTorch's losses in f64
  ParityErrors torch_f32_;
};

}  // namespace troupe::golden

#endif  // TOOLS_GOLDEN_PARITY_CASE_H_

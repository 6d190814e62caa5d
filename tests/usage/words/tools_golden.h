// Declares names that the usage comments in tools/golden/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_GOLDEN_H_
#define TESTS_USAGE_WORDS_TOOLS_GOLDEN_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/files/file_system.h"
#include "nn/autograd/context.h"
#include "nn/autograd/var.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/sequential.h"
#include "nn/optim/optimizer.h"
#include "nn/serialize/safetensors.h"
#include "nn/tensor/tensor.h"
#include "tools/golden/expression_ops.h"
#include "tools/golden/parity_case.h"

namespace troupe::golden::usage {

template <typename... Args>
void Show(const Args&... what);

namespace expression_h {
extern const std::string text;
extern const nn::SafetensorsFile inputs;
extern const std::unique_ptr<nn::Kernels> kernels;
}  // namespace expression_h

namespace expression_ops_h {
extern nn::Context& ctx;
extern const nn::Var x;
extern const ExpressionStep step;
}  // namespace expression_ops_h

namespace model_run_h {
extern std::unique_ptr<nn::Sequential> model;
extern std::unique_ptr<nn::Optimizer> sgd;
extern const std::unique_ptr<nn::Kernels> kernels;
extern const nn::Tensor x, labels;
void Fill(const nn::Parameter& parameter, const nn::Tensor& value);
}  // namespace model_run_h

namespace model_spec_h {
extern absl::Status status;
}

namespace parity_case_h {
extern base::FileSystem& files;
extern const std::unique_ptr<nn::Kernels> kernels;
}  // namespace parity_case_h

namespace parity_table_h {
extern const ParityErrors ours_f64, ours_f32;
extern const ParityCase parity;
}  // namespace parity_table_h

}  // namespace troupe::golden::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_GOLDEN_H_

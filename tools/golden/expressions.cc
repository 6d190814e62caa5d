// Evaluates random expressions of ops. tools/golden/expressions.py draws them,
// calls this program, and compares the results with PyTorch's.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/files/file_system.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/serialize/safetensors.h"
#include "tools/golden/expression.h"
#include "tools/golden/expression_ops.h"

namespace troupe::golden {
namespace {

// Limit on the text of a call; a thousand expressions take 1 MB.
constexpr std::int64_t kProgramBytesMax = std::int64_t{100} << 20;

constexpr char kHelp[] =
    R"(Evaluates random expressions of ops.

    python3 tools/golden/expressions.py     draws them, and calls this
    expressions --device=reference PROGRAM INPUTS RESULTS
    expressions --ops                       prints the ops that it has

PROGRAM is a text (tools/golden/expression.h), INPUTS a safetensors file with
its inputs. RESULTS, a safetensors file, gets all values and the gradients of
the inputs; its metadata has the error of each expression that failed.
On "reference" it computes in f64, on "cpu" in f32.

Exits with 0, or with 2 if the files cannot be read or written.
)";

enum ExitCode { kEvaluated = 0, kNotEvaluated = 2 };

absl::Status Run(const std::string& device, const std::string& program,
                 const std::string& inputs_path, const std::string& results) {
  base::PosixFileSystem files;
  const bool cpu = device == "--device=cpu";
  if (!cpu && device != "--device=reference") {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", device, "\" must be --device=cpu or --device=reference"));
  }
  const std::unique_ptr<nn::Kernels> kernels =
      cpu ? nn::CreateCpuKernels({}) : nn::CreateReferenceKernels();
  TROUPE_ASSIGN_OR_RETURN(
      const std::string text,
      base::ReadWholeFile(files, program, kProgramBytesMax));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Expression> expressions,
                          ParseExpressions(text));
  TROUPE_ASSIGN_OR_RETURN(const nn::SafetensorsFile inputs,
                          nn::SafetensorsFile::Open(files, inputs_path));
  std::vector<nn::NamedTensor> all;
  nn::SafetensorsMetadata errors;
  for (const Expression& expression : expressions) {
    absl::StatusOr<std::vector<nn::NamedTensor>> own = Evaluate(
        expression, inputs, cpu ? nn::DType::kF32 : nn::DType::kF64, *kernels);
    if (own.ok()) {
      for (nn::NamedTensor& one : *own) all.push_back(std::move(one));
    } else {
      errors[expression.name] = std::string(own.status().message());
    }
  }
  return nn::WriteSafetensors(files, results, all, errors);
}

int Main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--ops") {
    for (const std::string& name : ExpressionOps()) std::puts(name.c_str());
    return kEvaluated;
  }
  if (first == "--help" || argc != 5) {
    std::fputs(kHelp, first == "--help" ? stdout : stderr);
    return first == "--help" ? kEvaluated : kNotEvaluated;
  }
  const absl::Status status = Run(first, argv[2], argv[3], argv[4]);
  if (status.ok()) return kEvaluated;
  std::fprintf(stderr, "expressions: %s\n",
               std::string(status.message()).c_str());
  return kNotEvaluated;
}

}  // namespace
}  // namespace troupe::golden

int main(int argc, char** argv) { return troupe::golden::Main(argc, argv); }

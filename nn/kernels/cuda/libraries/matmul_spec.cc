#include "nn/kernels/cuda/libraries/matmul_spec.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::nn::cuda {
namespace {

absl::string_view NameOf(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kNone:
      return "none";
    case Epilogue::kBias:
      return "bias";
    case Epilogue::kReluBias:
      return "relu_bias";
    case Epilogue::kGeluBias:
      return "gelu_bias";
    case Epilogue::kGeluBackward:
      return "gelu_backward";
    case Epilogue::kRowSums:
      return "row_sums";
  }
  return "unknown";
}

}  // namespace

std::string MatmulSpec::Key() const {
  return absl::StrCat("matmul:", DTypeName(dtype), ":", DTypeName(out_dtype),
                      ":", rows, ".", cols, ".", depth, ":",
                      transpose_a ? "t" : "n", transpose_b ? "t" : "n", ":",
                      NameOf(epilogue), accumulate ? "+acc" : "",
                      allow_tf32 ? "+tf32" : "");
}

absl::Status MatmulSpec::Check() const {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(Key(), ": ", why));
  };
  for (std::int64_t extent : {rows, cols, depth}) {
    if (extent < 1 || extent > kExtentMax) {
      return refuse("extents must be in [1, 2^31)");
    }
  }
  TROUPE_RETURN_IF_ERROR(CheckDTypes(Key(), dtype, out_dtype));
  if (accumulate && epilogue != Epilogue::kNone &&
      epilogue != Epilogue::kRowSums) {
    return refuse(
        "accumulate must be without an epilogue, or with that of row sums");
  }
  if (has_aux() && cols % 8 != 0) {
    return refuse("with an aux, cols must be a multiple of 8");
  }
  return absl::OkStatus();
}

absl::Status CheckOperands(const MatmulSpec& spec,
                           const MatmulOperands& operands) {
  const bool sums = spec.epilogue == Epilogue::kRowSums;
  return CheckPointers(spec.Key(), {{"a", operands.a, true},
                                    {"b", operands.b, true},
                                    {"c", operands.c, true},
                                    {"bias", operands.bias, spec.has_bias()},
                                    {"aux", operands.aux, spec.has_aux()},
                                    {"row_sums", operands.row_sums, sums}});
}

}  // namespace troupe::nn::cuda

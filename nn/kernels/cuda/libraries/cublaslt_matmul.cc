#include <cublasLt.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/cuda/kernel_parts/dotted_version.h"
#include "nn/kernels/cuda/libraries/choice_text.h"
#include "nn/kernels/cuda/libraries/matmul.h"
#include "nn/kernels/cuda/libraries/measure.h"
#include "nn/kernels/cuda/libraries/plan_cache.h"
#include "nn/kernels/cuda/libraries/workspace.h"

namespace troupe::nn::cuda {
namespace {

// Returns an error with the text
// "matmul:...: cublasLtMatmul: CUBLAS_STATUS_INVALID_VALUE: ...".
absl::Status LtStatus(cublasStatus_t status, absl::string_view key,
                      absl::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message =
      absl::StrCat(key, ": ", what, ": ", cublasLtGetStatusName(status), ": ",
                   cublasLtGetStatusString(status));
  switch (status) {
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return absl::UnimplementedError(message);
    case CUBLAS_STATUS_ALLOC_FAILED:
      return absl::ResourceExhaustedError(message);
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return absl::UnavailableError(message);  // no driver, or no device
    default:
      return absl::InternalError(message);
  }
}

template <auto kDestroy>
struct Destroy {
  template <typename T>
  void operator()(T* object) const {
    (void)kDestroy(object);
  }
};
template <typename Handle, auto kDestroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<kDestroy>>;

using Library = Owned<cublasLtHandle_t, cublasLtDestroy>;
using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference =
    Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cudaDataType_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

cublasLtEpilogue_t EpilogueOf(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kNone:
      break;
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kReluBias:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::kGeluBias:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::kGeluBackward:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::kRowSums:
      // Sums of the library's B, which is our a (see Problem).
      return CUBLASLT_EPILOGUE_BGRADB;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// A spec in the form of the library, whose matrices are column-major. A
// row-major matrix [r, c] is a column-major matrix [c, r], so our c = a b is
// the library's c^T = b^T a^T: its A is our b, its B is our a, and each column
// of its result is a row of ours. Our bias of columns is a bias of its rows,
// which is what it supports.
struct Problem {
  Operation operation;
  Layout a, b, c;

  template <typename T>
  cublasStatus_t Set(cublasLtMatmulDescAttributes_t attribute, T value) const {
    return cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value,
                                          sizeof(value));
  }
};

// Makes the layout of a row-major matrix [rows, cols].
absl::StatusOr<Layout> MakeLayout(const std::string& key, DType dtype,
                                  std::int64_t rows, std::int64_t cols) {
  cublasLtMatrixLayout_t layout = nullptr;
  TROUPE_RETURN_IF_ERROR(
      LtStatus(cublasLtMatrixLayoutCreate(&layout, TypeOf(dtype),
                                          static_cast<std::uint64_t>(cols),
                                          static_cast<std::uint64_t>(rows),
                                          /*ld=*/cols),
               key, "cublasLtMatrixLayoutCreate"));
  return Layout(layout);
}

absl::Status SetVectors(const Problem& problem, const MatmulSpec& spec,
                        const std::string& key,
                        const MatmulOperands& operands) {
  // The library reads a bias and writes row sums through the same attribute.
  const void* vector = spec.has_bias() ? operands.bias : operands.row_sums;
  if (spec.has_bias() || spec.epilogue == Epilogue::kRowSums) {
    TROUPE_RETURN_IF_ERROR(
        LtStatus(problem.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector), key,
                 "setting the bias"));
  }
  if (!spec.has_aux()) return absl::OkStatus();
  return LtStatus(
      problem.Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.aux), key,
      "setting aux");
}

absl::Status SetOperation(const Problem& problem, const MatmulSpec& spec,
                          const std::string& key) {
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value,
                       absl::string_view what) {
    return LtStatus(problem.Set(attribute, value), key, what);
  };
  const auto transposed = [](bool yes) -> std::int32_t {
    return yes ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  TROUPE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSA,
                             transposed(spec.transpose_b), "setting TRANSA"));
  TROUPE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSB,
                             transposed(spec.transpose_a), "setting TRANSB"));
  const std::uint32_t epilogue = EpilogueOf(spec.epilogue);
  TROUPE_RETURN_IF_ERROR(
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue, "setting the epilogue"));
  if (spec.has_aux()) {
    TROUPE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, spec.cols,
                               "setting aux's distance of rows"));
  }
  // Placeholders until Run() has the pointers: heuristics use only their
  // alignment.
  MatmulOperands aligned;
  aligned.bias = aligned.aux = aligned.row_sums =
      reinterpret_cast<void*>(kOperandAlignmentBytes);
  return SetVectors(problem, spec, key, aligned);
}

absl::StatusOr<Problem> MakeProblem(const MatmulSpec& spec) {
  const std::string key = spec.Key();
  Problem problem;
  const bool tf32 = spec.allow_tf32 && spec.dtype == DType::kF32;
  cublasLtMatmulDesc_t operation = nullptr;
  TROUPE_RETURN_IF_ERROR(LtStatus(
      cublasLtMatmulDescCreate(
          &operation, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
          CUDA_R_32F),
      key, "cublasLtMatmulDescCreate"));
  problem.operation.reset(operation);
  TROUPE_RETURN_IF_ERROR(SetOperation(problem, spec, key));

  const auto [b_rows, b_cols] = spec.transpose_b
                                    ? std::pair(spec.cols, spec.depth)
                                    : std::pair(spec.depth, spec.cols);
  const auto [a_rows, a_cols] = spec.transpose_a
                                    ? std::pair(spec.depth, spec.rows)
                                    : std::pair(spec.rows, spec.depth);
  TROUPE_ASSIGN_OR_RETURN(problem.a,
                          MakeLayout(key, spec.dtype, b_rows, b_cols));
  TROUPE_ASSIGN_OR_RETURN(problem.b,
                          MakeLayout(key, spec.dtype, a_rows, a_cols));
  TROUPE_ASSIGN_OR_RETURN(
      problem.c, MakeLayout(key, spec.out_dtype, spec.rows, spec.cols));
  return problem;
}

// Makes the limits on the algorithms that the heuristics propose.
absl::StatusOr<Preference> MakePreference(const std::string& key,
                                          std::uint64_t workspace_bytes_max) {
  cublasLtMatmulPreference_t made = nullptr;
  TROUPE_RETURN_IF_ERROR(LtStatus(cublasLtMatmulPreferenceCreate(&made), key,
                                  "cublasLtMatmulPreferenceCreate"));
  Preference preference(made);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                       auto value) {
    return LtStatus(cublasLtMatmulPreferenceSetAttribute(made, attribute,
                                                         &value, sizeof(value)),
                    key, "cublasLtMatmulPreferenceSetAttribute");
  };
  TROUPE_RETURN_IF_ERROR(
      set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes_max));
  // Partial sums (split K) are added in the workspace, in f32 and in order,
  // never in the result, where they would be rounded to its dtype.
  const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  TROUPE_RETURN_IF_ERROR(
      set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions));
  for (auto alignment : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    const std::uint32_t bytes = kOperandAlignmentBytes;
    TROUPE_RETURN_IF_ERROR(set(alignment, bytes));
  }
  return preference;
}

std::string TextOf(const cublasLtMatmulAlgo_t& algorithm) {
  LtAlgorithm words;
  static_assert(sizeof(words) == sizeof(algorithm.data));
  std::memcpy(words.data(), algorithm.data, sizeof(words));
  return LtAlgorithmText(words);
}

class LtPlan final : public MatmulPlan {
 public:
  LtPlan(const MatmulSpec& spec, cublasLtHandle_t library, Problem problem,
         const cublasLtMatmulAlgo_t& algorithm, std::size_t workspace_bytes)
      : MatmulPlan(spec, TextOf(algorithm), WorkspaceRoom(workspace_bytes)),
        library_(library),
        problem_(std::move(problem)),
        algorithm_(algorithm),
        library_bytes_(workspace_bytes) {}

  absl::Status Run(const MatmulOperands& operands, void* workspace,
                   cudaStream_t stream) override {
    TROUPE_RETURN_IF_ERROR(CheckOperands(spec(), operands));
    TROUPE_RETURN_IF_ERROR(SetVectors(problem_, spec(), "matmul", operands));
    const float alpha = 1;
    const float beta = spec().accumulate ? 1 : 0;
    const cublasStatus_t status = cublasLtMatmul(
        library_, problem_.operation.get(), &alpha, operands.b,
        problem_.a.get(), operands.a, problem_.b.get(), &beta, operands.c,
        problem_.c.get(), operands.c, problem_.c.get(), &algorithm_,
        AlignedWorkspace(workspace), library_bytes_, stream);
    if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
    return LtStatus(status, spec().Key(),
                    absl::StrCat("cublasLtMatmul with a workspace of ",
                                 library_bytes_, " bytes and ", choice()));
  }

 private:
  const cublasLtHandle_t library_;
  const Problem problem_;
  const cublasLtMatmulAlgo_t algorithm_;
  const std::size_t library_bytes_;  // the library's share of the workspace
};

// The Library of PlanCache (plan_cache.h).
class CublasLt {
 public:
  using Spec = MatmulSpec;
  using Plan = MatmulPlan;
  using Plans = std::vector<std::unique_ptr<Plan>>;
  using Stream = cudaStream_t;

  CublasLt(Library library, const LibraryOptions& options)
      : library_(std::move(library)), options_(options) {}

  absl::StatusOr<std::unique_ptr<Plan>> FromChoice(const Spec& spec,
                                                   const std::string& choice) {
    LtAlgorithm words;
    if (!ParseLtAlgorithm(choice, words)) {
      return absl::InvalidArgumentError(absl::StrCat(
          choice, " is no algorithm of cuBLASLt; ", kKeepsChoices));
    }
    cublasLtMatmulAlgo_t algorithm;
    std::memcpy(algorithm.data, words.data(), sizeof(algorithm.data));
    TROUPE_ASSIGN_OR_RETURN(Problem problem, MakeProblem(spec));
    cublasLtMatmulHeuristicResult_t checked = {};
    TROUPE_RETURN_IF_ERROR(LtStatus(
        cublasLtMatmulAlgoCheck(library_.get(), problem.operation.get(),
                                problem.a.get(), problem.b.get(),
                                problem.c.get(), problem.c.get(), &algorithm,
                                &checked),
        spec.Key(), "cublasLtMatmulAlgoCheck of the algorithm on record"));
    if (checked.workspaceSize > options_.matmul_workspace_bytes_max) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the algorithm on record needs a workspace of ",
                       checked.workspaceSize, " bytes; the limit is ",
                       options_.matmul_workspace_bytes_max));
    }
    return std::make_unique<LtPlan>(spec, library_.get(), std::move(problem),
                                    algorithm, checked.workspaceSize);
  }

  absl::StatusOr<Plans> Candidates(const Spec& spec) {
    const std::string key = spec.Key();
    TROUPE_ASSIGN_OR_RETURN(const Problem problem, MakeProblem(spec));
    TROUPE_ASSIGN_OR_RETURN(
        const Preference preference,
        MakePreference(key, options_.matmul_workspace_bytes_max));
    std::vector<cublasLtMatmulHeuristicResult_t> results(
        std::max(1, options_.candidates_max));
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        library_.get(), problem.operation.get(), problem.a.get(),
        problem.b.get(), problem.c.get(), problem.c.get(), preference.get(),
        static_cast<int>(results.size()), results.data(), &found);
    // CUBLAS_STATUS_NOT_SUPPORTED means that there is no algorithm.
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) found = 0;
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) {
      TROUPE_RETURN_IF_ERROR(
          LtStatus(status, key, "cublasLtMatmulAlgoGetHeuristic"));
    }
    Plans plans;
    for (int i = 0; i < found; ++i) {
      if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
      TROUPE_ASSIGN_OR_RETURN(Problem own, MakeProblem(spec));
      plans.push_back(std::make_unique<LtPlan>(spec, library_.get(),
                                               std::move(own), results[i].algo,
                                               results[i].workspaceSize));
    }
    return plans;
  }

  absl::StatusOr<bool> IsCapturing(Stream stream) {
    return cuda::IsCapturing(stream);
  }

  absl::StatusOr<std::vector<CandidateTimes>> Time(const Spec& spec,
                                                   const Plans& candidates,
                                                   Stream stream) {
    SampleMemory memory(*options_.allocator, stream);
    TROUPE_ASSIGN_OR_RETURN(const MatmulOperands operands,
                            Sample(spec, memory));
    return TimePlans(candidates, operands, memory, stream);
  }

 private:
  absl::StatusOr<MatmulOperands> Sample(const Spec& spec,
                                        SampleMemory& memory) {
    MatmulOperands operands;
    TROUPE_ASSIGN_OR_RETURN(operands.a,
                            memory.Numbers(spec.dtype, spec.rows * spec.depth));
    TROUPE_ASSIGN_OR_RETURN(operands.b,
                            memory.Numbers(spec.dtype, spec.depth * spec.cols));
    const std::int64_t size = spec.rows * spec.cols;
    TROUPE_ASSIGN_OR_RETURN(operands.c, memory.Numbers(spec.out_dtype, size));
    if (spec.has_bias()) {
      TROUPE_ASSIGN_OR_RETURN(operands.bias,
                              memory.Numbers(spec.out_dtype, spec.cols));
    }
    if (spec.has_aux()) {
      TROUPE_ASSIGN_OR_RETURN(operands.aux,
                              memory.Numbers(spec.out_dtype, size));
    }
    if (spec.epilogue == Epilogue::kRowSums) {
      TROUPE_ASSIGN_OR_RETURN(operands.row_sums,
                              memory.Numbers(spec.out_dtype, spec.rows));
    }
    return operands;
  }

  const Library library_;
  const LibraryOptions options_;
};

}  // namespace

std::string MatmulLibraryName() {
  return absl::StrCat("cuBLASLt ", DottedVersion(cublasLtGetVersion()));
}

absl::StatusOr<std::unique_ptr<MatmulPlans>> OpenMatmulPlans(
    const LibraryOptions& options) {
  TROUPE_CHECK(options.allocator != nullptr, "plans are measured in memory");
  cublasLtHandle_t library = nullptr;
  TROUPE_RETURN_IF_ERROR(
      LtStatus(cublasLtCreate(&library), "products", "cublasLtCreate"));
  return std::make_unique<LibraryPlans<CublasLt, MatmulPlans>>(
      options, Library(library), options);
}

}  // namespace troupe::nn::cuda

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/kernels/cuda/kernel_parts/dotted_version.h"
#include "nn/kernels/cuda/libraries/choice_text.h"
#include "nn/kernels/cuda/libraries/conv.h"
#include "nn/kernels/cuda/libraries/conv_exactness.h"
#include "nn/kernels/cuda/libraries/cudnn_graph.h"
#include "nn/kernels/cuda/libraries/cudnn_handle.h"
#include "nn/kernels/cuda/libraries/measure.h"
#include "nn/kernels/cuda/libraries/plan_cache.h"
#include "nn/kernels/cuda/libraries/workspace.h"

namespace troupe::nn::cuda {
namespace {

// Ids of the tensors of a graph. kSum is the result of forward before the bias.
constexpr std::int64_t kImage = 1, kWeight = 2, kOutput = 3, kBias = 4,
                       kSum = 5;

absl::Status WithKey(const ConvSpec& spec, const absl::Status& status) {
  if (status.ok()) return status;
  return base::WithMessage(status,
                           absl::StrCat(spec.Key(), ": ", status.message()));
}

cudnnDataType_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return CUDNN_DATA_BFLOAT16;
    case DType::kF16:
      return CUDNN_DATA_HALF;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

// cuDNN orders dimensions as (N, C, H, W) for any layout; the strides say that
// channels are last. Filters with fewer channels than the image make it a
// grouped convolution.
GraphTensor ChannelsLast(std::int64_t uid, DType dtype, std::int64_t n,
                         std::int64_t h, std::int64_t w, std::int64_t c) {
  GraphTensor tensor;
  tensor.uid = uid;
  tensor.type = TypeOf(dtype);
  tensor.dims = {n, c, h, w};
  tensor.strides = {h * w * c, 1, w * c, c};
  return tensor;
}

absl::StatusOr<Descriptor> Make(const GraphTensor& tensor) {
  return MakeTensor(tensor, kOperandAlignmentBytes);
}

struct Tensors {
  Descriptor image, weight, output;
};

absl::StatusOr<Tensors> MakeTensors(const ConvSpec& s, bool fused) {
  const auto dtype_of = [&](ConvWay written) {
    return s.way == written ? s.out_dtype : s.dtype;
  };
  Tensors tensors;
  TROUPE_ASSIGN_OR_RETURN(
      tensors.image,
      Make(ChannelsLast(kImage, dtype_of(ConvWay::kBackwardInput), s.N, s.H,
                        s.W, s.C)));
  TROUPE_ASSIGN_OR_RETURN(
      tensors.weight,
      Make(ChannelsLast(kWeight, dtype_of(ConvWay::kBackwardWeight), s.O,
                        s.window.kernel_h, s.window.kernel_w,
                        s.group_channels())));
  GraphTensor output = ChannelsLast(kOutput, dtype_of(ConvWay::kForward), s.N,
                                    s.P(), s.Q(), s.O);
  if (fused) {
    output.uid = kSum;
    output.type = CUDNN_DATA_FLOAT;
    output.is_virtual = true;
  }
  TROUPE_ASSIGN_OR_RETURN(tensors.output, Make(output));
  return tensors;
}

absl::StatusOr<Descriptor> MakeWindow(const ConvSpec& spec) {
  using Pair = std::vector<std::int64_t>;
  const Window2d& w = spec.window;
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
           CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
           CUDNN_CROSS_CORRELATION)
      .Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
           std::int64_t{2})
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64,
           Pair{w.pad_h, w.pad_w})
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64,
           Pair{w.pad_h, w.pad_w})
      .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64,
           Pair{w.stride_h, w.stride_w})
      .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64,
           Pair{w.dilation_h, w.dilation_w});
  TROUPE_RETURN_IF_ERROR(made.Finalize("convolution"));
  return made;
}

// Names of the operation of one way, and of its attributes.
struct OperationNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t image, weight, output, window, alpha, beta;
};

OperationNames NamesOf(ConvWay way) {
  switch (way) {
    case ConvWay::kBackwardInput:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvWay::kBackwardWeight:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  }
}

// Makes the operation output = sum + bias[O].
absl::StatusOr<Descriptor> MakeBias(const ConvSpec& spec,
                                    const Descriptor& sum) {
  Descriptor add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  add.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
          CUDNN_POINTWISE_ADD)
      .Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
           CUDNN_DATA_FLOAT);
  TROUPE_RETURN_IF_ERROR(add.Finalize("sum with a bias"));
  TROUPE_ASSIGN_OR_RETURN(
      const Descriptor bias,
      Make(ChannelsLast(kBias, spec.dtype, 1, 1, 1, spec.O)));
  TROUPE_ASSIGN_OR_RETURN(const Descriptor output,
                          Make(ChannelsLast(kOutput, spec.out_dtype, spec.N,
                                            spec.P(), spec.Q(), spec.O)));
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, sum)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, bias)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, output);
  TROUPE_RETURN_IF_ERROR(operation.Finalize("sum with a bias"));
  return operation;
}

// Makes the graph of the convolution and, if `fused`, of the sum with the bias.
absl::StatusOr<Descriptor> MakeConvGraph(cudnnHandle_t handle,
                                         const ConvSpec& spec, bool fused) {
  TROUPE_ASSIGN_OR_RETURN(const Tensors tensors, MakeTensors(spec, fused));
  TROUPE_ASSIGN_OR_RETURN(const Descriptor window, MakeWindow(spec));
  const OperationNames names = NamesOf(spec.way);
  Descriptor operation(names.operation);
  operation.Set(names.image, tensors.image)
      .Set(names.weight, tensors.weight)
      .Set(names.output, tensors.output)
      .Set(names.window, window)
      .Set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f)
      .Set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
  TROUPE_RETURN_IF_ERROR(operation.Finalize("operation"));
  std::vector<Descriptor> operations;
  operations.push_back(std::move(operation));
  if (fused) {
    TROUPE_ASSIGN_OR_RETURN(Descriptor bias, MakeBias(spec, tensors.output));
    operations.push_back(std::move(bias));
  }
  return MakeGraph(handle, operations);
}

bool IsExactF32(const ConvSpec& spec) {
  return spec.dtype == DType::kF32 && !spec.allow_tf32;
}

// Returns whether an engine with these numerical notes gives the same bits
// every time and keeps the precision that the spec demands. The notes are not
// complete (conv_exactness.h).
bool IsAllowed(const ConvSpec& spec,
               const std::vector<cudnnBackendNumericalNote_t>& notes) {
  const bool exact_f32 = IsExactF32(spec);
  return std::none_of(notes.begin(), notes.end(), [&](auto note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      // Transforms that lose several bits of an f32.
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
      case CUDNN_NUMERICAL_NOTE_FFT:
        return true;
      // For f32 operands this means TF32.
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        return exact_f32;
      default:
        return false;
    }
  });
}

class CudnnPlan final : public ConvPlan {
 public:
  CudnnPlan(const ConvSpec& spec, CudnnHandle& cudnn, GraphPlan plan,
            const EngineChoice& choice)
      : ConvPlan(spec, choice.ToText(),
                 WorkspaceRoom(static_cast<std::size_t>(plan.workspace_bytes)),
                 choice.fused),
        cudnn_(cudnn),
        plan_(std::move(plan)) {}

  absl::Status Run(const ConvOperands& operands, void* workspace,
                   cudaStream_t stream) override {
    TROUPE_RETURN_IF_ERROR(CheckOperands(spec(), operands, adds_bias()));
    TROUPE_RETURN_IF_ERROR(cudnn_.UseStream(stream));
    std::vector<std::int64_t> uids = {kImage, kWeight, kOutput};
    std::vector<void*> pointers = {operands.image, operands.weight,
                                   operands.output};
    if (adds_bias()) {
      uids.push_back(kBias);
      pointers.push_back(const_cast<void*>(operands.bias));
    }
    return WithKey(spec(), Execute(cudnn_.get(), plan_, uids, pointers,
                                   AlignedWorkspace(workspace)));
  }

 private:
  CudnnHandle& cudnn_;
  const GraphPlan plan_;
};

// The Library of PlanCache (plan_cache.h).
class CudnnLibrary {
 public:
  using Spec = ConvSpec;
  using Plan = ConvPlan;
  using Stream = cudaStream_t;
  using Plans = std::vector<std::unique_ptr<Plan>>;

  CudnnLibrary(CudnnHandle cudnn, const LibraryOptions& options)
      : cudnn_(std::move(cudnn)), options_(options) {}

  absl::StatusOr<std::unique_ptr<Plan>> FromChoice(const Spec& spec,
                                                   const std::string& text) {
    EngineChoice choice;
    if (!EngineChoice::Parse(text, choice) || (choice.fused && !spec.bias)) {
      return absl::InvalidArgumentError(absl::StrCat(
          text, " is no engine of cuDNN for this; ", kKeepsChoices));
    }
    TROUPE_ASSIGN_OR_RETURN(const Descriptor graph,
                            MakeConvGraph(cudnn_.get(), spec, choice.fused));
    TROUPE_ASSIGN_OR_RETURN(const Descriptor config, ConfigOf(graph, choice));
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan,
                            PlanOf(spec, config, choice.fused));
    if (plan == nullptr) {
      return absl::UnimplementedError(absl::StrCat(
          "engine ", text, " may not compute this; ", kKeepsChoices));
    }
    return plan;
  }

  // For a spec with a bias, returns engines that also add it; if there are
  // none, engines that do not.
  absl::StatusOr<Plans> Candidates(const Spec& spec) {
    if (spec.bias) {
      TROUPE_ASSIGN_OR_RETURN(Plans fused, PlansOf(spec, /*fused=*/true));
      if (!fused.empty()) return fused;
    }
    return PlansOf(spec, /*fused=*/false);
  }

  absl::StatusOr<bool> IsCapturing(Stream stream) {
    return cuda::IsCapturing(stream);
  }

  absl::StatusOr<std::vector<CandidateTimes>> Time(const Spec& spec,
                                                   const Plans& candidates,
                                                   Stream stream) {
    SampleMemory memory(*options_.allocator, stream);
    TROUPE_ASSIGN_OR_RETURN(const ConvOperands operands, Sample(spec, memory));
    TROUPE_ASSIGN_OR_RETURN(std::vector<CandidateTimes> times,
                            TimePlans(candidates, operands, memory, stream));
    if (IsExactF32(spec)) {
      TROUPE_RETURN_IF_ERROR(DropInexact(candidates, operands,
                                         *options_.allocator, stream, times));
    }
    return times;
  }

 private:
  absl::StatusOr<ConvOperands> Sample(const Spec& spec, SampleMemory& memory) {
    ConvOperands operands;
    const auto numbers = [&](ConvWay written, std::int64_t elems) {
      return memory.Numbers(spec.way == written ? spec.out_dtype : spec.dtype,
                            elems);
    };
    TROUPE_ASSIGN_OR_RETURN(
        operands.image, numbers(ConvWay::kBackwardInput, spec.image_elems()));
    TROUPE_ASSIGN_OR_RETURN(operands.weight, numbers(ConvWay::kBackwardWeight,
                                                     spec.weight_elems()));
    TROUPE_ASSIGN_OR_RETURN(operands.output,
                            numbers(ConvWay::kForward, spec.output_elems()));
    TROUPE_ASSIGN_OR_RETURN(operands.bias, memory.Numbers(spec.dtype, spec.O));
    return operands;
  }

  // Returns null if the engine is not allowed, does not support the graph, or
  // needs too large a workspace.
  absl::StatusOr<std::unique_ptr<Plan>> PlanOf(const Spec& spec,
                                               const Descriptor& config,
                                               bool fused) {
    TROUPE_ASSIGN_OR_RETURN(const auto notes, NotesOf(config));
    if (!IsAllowed(spec, notes)) return nullptr;
    TROUPE_ASSIGN_OR_RETURN(EngineChoice choice, ChoiceOf(config));
    choice.fused = fused;
    absl::StatusOr<GraphPlan> plan = MakeGraphPlan(cudnn_.get(), config);
    // An engine may find only now that it does not support the graph.
    if (!plan.ok()) return nullptr;
    if (plan->workspace_bytes < 0 ||
        static_cast<std::uint64_t>(plan->workspace_bytes) >
            options_.conv_workspace_bytes_max) {
      return nullptr;
    }
    return std::make_unique<CudnnPlan>(spec, cudnn_, *std::move(plan), choice);
  }

  absl::StatusOr<Plans> PlansOf(const Spec& spec, bool fused) {
    Plans plans;
    const std::size_t plans_max =
        static_cast<std::size_t>(std::max(1, options_.conv_candidates_max));
    const absl::StatusOr<Descriptor> graph =
        MakeConvGraph(cudnn_.get(), spec, fused);
    if (absl::IsUnimplemented(graph.status())) return plans;
    TROUPE_RETURN_IF_ERROR(WithKey(spec, graph.status()));
    // The fallback engines support nearly everything, but are slow.
    for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      constexpr std::int64_t kConfigsMax = 32;
      const auto configs = EngineConfigs(*graph, mode, kConfigsMax);
      // cuDNN returns an error if there is no engine.
      if (!configs.ok()) continue;
      for (const Descriptor& config : *configs) {
        TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan,
                                PlanOf(spec, config, fused));
        if (plan != nullptr) plans.push_back(std::move(plan));
        if (plans.size() == plans_max) break;
      }
      if (!plans.empty()) break;
    }
    return plans;
  }

  CudnnHandle cudnn_;
  const LibraryOptions options_;
};

}  // namespace

std::string ConvLibraryName() {
  return absl::StrCat("cuDNN ", DottedVersion(cudnnGetVersion()));
}

absl::StatusOr<std::unique_ptr<ConvPlans>> OpenConvPlans(
    const LibraryOptions& options) {
  TROUPE_CHECK(options.allocator != nullptr, "plans are measured in memory");
  TROUPE_ASSIGN_OR_RETURN(CudnnHandle cudnn, CudnnHandle::Open());
  return std::make_unique<LibraryPlans<CudnnLibrary, ConvPlans>>(
      options, std::move(cudnn), options);
}

}  // namespace troupe::nn::cuda

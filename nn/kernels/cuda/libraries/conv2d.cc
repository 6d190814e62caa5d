#include <optional>

#include "base/check.h"
#include "nn/kernels/cuda/libraries/call_memory.h"
#include "nn/kernels/cuda/libraries/direct_conv.h"
#include "nn/kernels/cuda/libraries/linear.h"
#include "nn/kernels/cuda/libraries/matrix_kernels.h"

namespace troupe::nn::cuda {
namespace {

ConvSpec SpecOf(const LibraryOps& gpu, ConvWay way, const Window2d& window,
                In x_NHWC, In w_OCRS, In y_NPQO) {
  ConvSpec spec;
  spec.way = way;
  spec.N = x_NHWC.dim(0), spec.H = x_NHWC.dim(1), spec.W = x_NHWC.dim(2);
  spec.C = x_NHWC.dim(3), spec.O = y_NPQO.dim(3);
  spec.groups = GroupsOf(x_NHWC, w_OCRS);
  spec.window = window;
  spec.dtype = spec.out_dtype = x_NHWC.dtype();
  spec.allow_tf32 = gpu.allow_tf32 && spec.dtype == DType::kF32;
  return spec;
}

std::int64_t Taps(const ConvSpec& s) {
  return s.window.kernel_h * s.window.kernel_w;
}

// Returns whether the convolution is a linear layer of the pixels: a 1x1 window
// over every pixel, one group.
bool IsPointwise(const Window2d& window, In x_NHWC, In w_OCRS) {
  return window.kernel_h == 1 && window.kernel_w == 1 && window.stride_h == 1 &&
         window.stride_w == 1 && window.pad_h == 0 && window.pad_w == 0 &&
         GroupsOf(x_NHWC, w_OCRS) == 1;
}

// Views images [N, H, W, C] as [pixels, C].
Tensor Pixels(const Tensor& t) {
  return t.View({t.dim(0) * t.dim(1) * t.dim(2), t.dim(3)});
}

// Views weights [O, C, 1, 1] as [O, C].
Tensor Weights(const Tensor& w) { return w.View({w.dim(0), w.dim(1)}); }

// Returns whether [O, C / G, R, S] and [O, R, S, C / G] are the same bytes.
bool SameLayout(const ConvSpec& spec) {
  return spec.group_channels() == 1 || Taps(spec) == 1;
}

// Returns w[O, C / G, R, S] as [O, R, S, C / G], transposed into `memory` if
// the layouts differ.
absl::StatusOr<void*> Packed(LibraryOps& gpu, const ConvSpec& spec, In w_OCRS,
                             CallMemory& memory) {
  if (SameLayout(spec)) {
    TROUPE_ASSIGN_OR_RETURN(const void* const w, memory.Read(w_OCRS));
    return const_cast<void*>(w);  // forward and backward only read it
  }
  TROUPE_ASSIGN_OR_RETURN(void* const w_ORSC, memory.Bytes(w_OCRS.bytes()));
  TROUPE_RETURN_IF_ERROR(TransposeEach(
      spec.O, {spec.group_channels(), Taps(spec)},
      {w_OCRS.dtype(), w_OCRS.device_data()},
      /*accumulate=*/false, {w_OCRS.dtype(), w_ORSC}, gpu.stream));
  return w_ORSC;
}

class DirectPlan final : public ConvPlan {
 public:
  explicit DirectPlan(const ConvSpec& spec)
      : ConvPlan(spec, "direct", DirectConvScratchBytes(spec),
                 /*adds_bias=*/false) {}

  absl::Status Run(const ConvOperands& operands, void* workspace,
                   cudaStream_t stream) override {
    return DirectConv(spec(), operands, workspace, stream);
  }
};

// The plan of one call: the library's, or that of direct_conv.h.
class PlanOfCall {
 public:
  absl::StatusOr<ConvPlan*> Get(LibraryOps& gpu, const ConvSpec& spec) {
    if (!ConvIsDirect(spec)) return gpu.convs->Get(spec, gpu.stream);
    return &direct_.emplace(spec);
  }
  // The same, but uses direct_conv.h also if the library has no algorithm.
  absl::StatusOr<ConvPlan*> GetAny(LibraryOps& gpu, const ConvSpec& spec) {
    absl::StatusOr<ConvPlan*> plan = Get(gpu, spec);
    if (!absl::IsUnimplemented(plan.status())) return plan;
    return &direct_.emplace(spec);
  }

 private:
  std::optional<DirectPlan> direct_;
};

absl::Status RunPlan(LibraryOps& gpu, ConvPlan& plan,
                     const ConvOperands& operands, CallMemory& memory) {
  TROUPE_ASSIGN_OR_RETURN(void* const workspace,
                          memory.Bytes(plan.workspace_bytes()));
  TROUPE_RETURN_IF_ERROR(plan.Run(operands, workspace, gpu.stream));
  return memory.Finish();
}

// Returns the address of an operand that a plan only reads. It is not const
// because ConvOperands has one type for operands and results.
absl::StatusOr<void*> Read(const Tensor& t, CallMemory& memory) {
  TROUPE_ASSIGN_OR_RETURN(const void* const data, memory.Read(t));
  return const_cast<void*>(data);
}

absl::Status Conv2dForward(LibraryOps& gpu, const Window2d& window, In x, In w,
                           In b, Tensor& y) {
  if (x.dim(0) == 0) return absl::OkStatus();
  if (IsPointwise(window, x, w)) {
    Tensor pixels = Pixels(y);
    return LinearForward(gpu, Pixels(x), Weights(w), b, pixels);
  }
  ConvSpec spec = SpecOf(gpu, ConvWay::kForward, window, x, w, y);
  spec.bias = b.defined();
  PlanOfCall plans;
  TROUPE_ASSIGN_OR_RETURN(ConvPlan* const plan, plans.GetAny(gpu, spec));
  CallMemory memory(gpu);
  ConvOperands operands;
  TROUPE_ASSIGN_OR_RETURN(operands.image, Read(x, memory));
  TROUPE_ASSIGN_OR_RETURN(operands.weight, Packed(gpu, spec, w, memory));
  TROUPE_ASSIGN_OR_RETURN(operands.output, memory.Write(y, false));
  if (plan->adds_bias()) {
    TROUPE_ASSIGN_OR_RETURN(operands.bias, memory.Read(b));
  }
  TROUPE_RETURN_IF_ERROR(RunPlan(gpu, *plan, operands, memory));
  if (!spec.bias || plan->adds_bias()) return absl::OkStatus();
  return AddRowVector({spec.N * spec.P() * spec.Q(), spec.O},
                      {b.dtype(), b.device_data()},
                      {y.dtype(), y.device_data()}, gpu.stream);
}

absl::Status Conv2dBackwardInput(LibraryOps& gpu, const Window2d& window, In dy,
                                 In w, Tensor& dx) {
  if (dy.dim(0) == 0) return absl::OkStatus();
  if (IsPointwise(window, dx, w)) {
    Tensor pixels = Pixels(dx);
    return LinearBackwardInput(gpu, Pixels(dy), Weights(w), pixels);
  }
  const ConvSpec spec = SpecOf(gpu, ConvWay::kBackwardInput, window, dx, w, dy);
  PlanOfCall plans;
  TROUPE_ASSIGN_OR_RETURN(ConvPlan* const plan, plans.GetAny(gpu, spec));
  CallMemory memory(gpu);
  ConvOperands operands;
  TROUPE_ASSIGN_OR_RETURN(operands.image, memory.Write(dx, false));
  TROUPE_ASSIGN_OR_RETURN(operands.weight, Packed(gpu, spec, w, memory));
  TROUPE_ASSIGN_OR_RETURN(operands.output, Read(dy, memory));
  return RunPlan(gpu, *plan, operands, memory);
}

// Returns a plan that computes dw in the dtype of the images: sums in f32,
// rounded once, as in PyTorch; micro-batches add up in the dtype of the
// gradient. It does not write f32 from bf16 images, because cuDNN has only one
// engine for that which sums in a fixed order, up to 20 times slower on an
// H200. The kernels of direct_conv.h write f32 at no cost.
absl::StatusOr<ConvPlan*> PlanOfWeights(LibraryOps& gpu, ConvSpec spec,
                                        PlanOfCall& plans) {
  if (ConvIsDirect(spec)) spec.out_dtype = DType::kF32;
  return plans.GetAny(gpu, spec);
}

// Computes dw[O, C / G, R, S] (+)= ..., in the layout [O, R, S, C / G] first.
absl::Status WeightsOnly(LibraryOps& gpu, const ConvSpec& spec, In x, In dy,
                         bool accumulate, Tensor& dw) {
  PlanOfCall plans;
  TROUPE_ASSIGN_OR_RETURN(ConvPlan* const plan,
                          PlanOfWeights(gpu, spec, plans));
  CallMemory memory(gpu);
  const DType dtype = plan->spec().out_dtype;
  const bool direct = SameLayout(spec) && !accumulate && dtype == dw.dtype();
  ConvOperands operands;
  TROUPE_ASSIGN_OR_RETURN(operands.image, Read(x, memory));
  TROUPE_ASSIGN_OR_RETURN(operands.output, Read(dy, memory));
  TROUPE_ASSIGN_OR_RETURN(
      operands.weight,
      direct ? memory.Write(dw, false)
             : memory.Bytes(static_cast<std::size_t>(spec.weight_elems()) *
                            SizeOf(dtype)));
  TROUPE_RETURN_IF_ERROR(RunPlan(gpu, *plan, operands, memory));
  if (direct) return absl::OkStatus();
  return TransposeEach(spec.O, {Taps(spec), spec.group_channels()},
                       {dtype, operands.weight}, accumulate,
                       {dw.dtype(), dw.device_data()}, gpu.stream);
}

absl::Status Conv2dBackwardWeight(LibraryOps& gpu, const Window2d& window, In x,
                                  In dy, bool accumulate, Tensor& dw,
                                  Tensor& db) {
  if (x.dim(0) == 0) {
    TROUPE_RETURN_IF_ERROR(AddNothing(gpu, accumulate, dw));
    return AddNothing(gpu, accumulate, db);
  }
  if (IsPointwise(window, x, dw)) {
    Tensor weights = Weights(dw);
    return LinearBackwardWeight(gpu, Pixels(x), Pixels(dy), accumulate, weights,
                                db);
  }
  const ConvSpec spec =
      SpecOf(gpu, ConvWay::kBackwardWeight, window, x, dw, dy);
  TROUPE_RETURN_IF_ERROR(WeightsOnly(gpu, spec, x, dy, accumulate, dw));
  return BiasGradient(gpu, dy, accumulate, db);
}

absl::Status BiasForward(LibraryOps& gpu, In b, Tensor& y) {
  if (y.numel() == 0) return absl::OkStatus();
  return AddRowVector({y.numel() / b.numel(), b.numel()},
                      {b.dtype(), b.device_data()},
                      {y.dtype(), y.device_data()}, gpu.stream);
}

absl::Status BiasBackward(LibraryOps& gpu, In dy, bool accumulate, Tensor& db) {
  if (dy.numel() == 0) return AddNothing(gpu, accumulate, db);
  return BiasGradient(gpu, dy, accumulate, db);
}

}  // namespace

void BindConv2d(Conv2dKernels& ops, LibraryOps* state) {
  BindLibrary<Conv2dForward>(state, ops.Conv2dForward);
  BindLibrary<Conv2dBackwardInput>(state, ops.Conv2dBackwardInput);
  BindLibrary<Conv2dBackwardWeight>(state, ops.Conv2dBackwardWeight);
}

void BindBias(BiasKernels& ops, LibraryOps* state) {
  BindLibrary<BiasForward>(state, ops.BiasForward);
  BindLibrary<BiasBackward>(state, ops.BiasBackward);
}

}  // namespace troupe::nn::cuda

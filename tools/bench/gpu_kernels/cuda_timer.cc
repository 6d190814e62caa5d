#include <cuda_runtime_api.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cuda/cuda_status.h"
#include "nn/kernels/cuda/device/cuda_device.h"
#include "nn/kernels/cuda/libraries/library_ops.h"
#include "nn/kernels/cuda/libraries/measure.h"
#include "tools/bench/gpu_kernels/kernel_call.h"
#include "tools/bench/gpu_kernels/kernel_timer.h"

namespace troupe::bench {
namespace {

using nn::DType;
using nn::cuda::CandidateTimes;
using nn::cuda::ConvOperands;
using nn::cuda::ConvPlan;
using nn::cuda::ConvSpec;
using nn::cuda::ConvWay;
using nn::cuda::LibraryOptions;
using nn::cuda::MatmulOperands;
using nn::cuda::MatmulPlan;
using nn::cuda::MatmulSpec;
using nn::cuda::SampleMemory;

using Run = std::function<absl::Status()>;

// Returns options that consider far more algorithms than an op does.
LibraryOptions WideSearch(nn::Allocator& allocator) {
  LibraryOptions options;
  options.allocator = &allocator;
  options.candidates_max = options.conv_candidates_max = 48;
  options.matmul_workspace_bytes_max = std::size_t{256} << 20;
  options.conv_workspace_bytes_max = std::size_t{1} << 30;
  return options;
}

// Products and convolutions as in a rank's kernel set (library_ops.h).
class Ops final : public nn::Kernels {
 public:
  static absl::StatusOr<std::unique_ptr<Ops>> Open(nn::cuda::CudaDevice& device,
                                                   bool allow_tf32) {
    std::unique_ptr<Ops> ops(new Ops(device));
    LibraryOptions options;
    options.allocator = &device.allocator();
    TROUPE_ASSIGN_OR_RETURN(ops->matmuls_, nn::cuda::OpenMatmulPlans(options));
    TROUPE_ASSIGN_OR_RETURN(ops->convs_, nn::cuda::OpenConvPlans(options));
    ops->state_.stream = device.stream(nn::Queue::kCompute);
    ops->state_.allocator = &device.allocator();
    ops->state_.matmuls = ops->matmuls_.get();
    ops->state_.convs = ops->convs_.get();
    ops->state_.allow_tf32 = allow_tf32;
    nn::cuda::BindLinear(*ops, &ops->state_);
    nn::cuda::BindConv2d(*ops, &ops->state_);
    return ops;
  }

  nn::Allocator& allocator() override { return allocator_; }
  std::string Describe() const override {
    return absl::StrCat(nn::cuda::MatmulLibraryName(), ", ",
                        nn::cuda::ConvLibraryName());
  }

 private:
  explicit Ops(nn::cuda::CudaDevice& device)
      : Kernels({nn::DeviceType::kCuda, device.ordinal()}),
        allocator_(device.allocator()) {}

  nn::Allocator& allocator_;
  std::unique_ptr<nn::cuda::MatmulPlans> matmuls_;
  std::unique_ptr<nn::cuda::ConvPlans> convs_;
  nn::cuda::LibraryOps state_;
};

// Returns the product of a linear layer without bias, or of a 1x1 convolution,
// as in linear.cc: x, w and y are matrices [N, K], [M, K] and [N, M].
MatmulSpec MatmulOf(const KernelCase& c, DType dtype, bool allow_tf32) {
  const std::int64_t N = c.conv ? c.N * c.H * c.H : c.N;
  const std::int64_t K = c.conv ? c.C : c.K;
  const std::int64_t M = c.conv ? c.O : c.M;
  MatmulSpec spec;
  spec.dtype = spec.out_dtype = dtype;
  spec.allow_tf32 = allow_tf32 && dtype == DType::kF32;
  switch (c.way) {
    case KernelWay::kForward:
      spec.rows = N, spec.cols = M, spec.depth = K;
      spec.transpose_b = true;
      break;
    case KernelWay::kBackwardInput:
      spec.rows = N, spec.cols = K, spec.depth = M;
      break;
    case KernelWay::kBackwardWeight:
      spec.rows = M, spec.cols = K, spec.depth = N;
      spec.transpose_a = true;
      break;
  }
  return spec;
}

MatmulOperands OperandsOf(const KernelCase& c, void* x, void* w, void* y) {
  MatmulOperands operands;
  switch (c.way) {
    case KernelWay::kForward:
      operands.a = x, operands.b = w, operands.c = y;
      break;
    case KernelWay::kBackwardInput:
      operands.a = y, operands.b = w, operands.c = x;
      break;
    case KernelWay::kBackwardWeight:
      operands.a = y, operands.b = x, operands.c = w;
      break;
  }
  return operands;
}

ConvSpec ConvOf(const KernelCase& c, DType dtype, bool allow_tf32) {
  ConvSpec spec;
  spec.way = static_cast<ConvWay>(c.way);
  spec.N = c.N, spec.H = spec.W = c.H, spec.C = c.C, spec.O = c.O;
  spec.window = c.window;
  spec.dtype = spec.out_dtype = dtype;
  spec.allow_tf32 = allow_tf32 && dtype == DType::kF32;
  return spec;
}

bool IsMatmul(const KernelCase& c) {
  const nn::Window2d& w = c.window;
  return !c.conv || (w.kernel_h == 1 && w.stride_h == 1 && w.pad_h == 0);
}

class CudaTimer final : public KernelTimer {
 public:
  static absl::StatusOr<std::unique_ptr<CudaTimer>> Open(nn::Device device,
                                                         bool allow_tf32) {
    std::unique_ptr<CudaTimer> timer(new CudaTimer(allow_tf32));
    TROUPE_ASSIGN_OR_RETURN(timer->device_,
                            nn::cuda::CudaDevice::Open(device.index));
    TROUPE_RETURN_IF_ERROR(
        base::CudaStatus(cudaSetDevice(device.index), "cudaSetDevice"));
    cudaDeviceProp properties;
    TROUPE_RETURN_IF_ERROR(
        base::CudaStatus(cudaGetDeviceProperties(&properties, device.index),
                         "cudaGetDeviceProperties"));
    TROUPE_ASSIGN_OR_RETURN(timer->ops_,
                            Ops::Open(*timer->device_, allow_tf32));
    const LibraryOptions wide = WideSearch(timer->device_->allocator());
    TROUPE_ASSIGN_OR_RETURN(timer->matmuls_, nn::cuda::OpenMatmulPlans(wide));
    TROUPE_ASSIGN_OR_RETURN(timer->convs_, nn::cuda::OpenConvPlans(wide));
    timer->gpu_ = absl::StrCat(device.ToString(), ", ", properties.name, ", ",
                               timer->ops_->Describe());
    return timer;
  }

  std::string Gpu() const override { return gpu_; }

  absl::Status Prepare(const KernelCase& c, DType dtype) override {
    runs_.clear();
    // The runs use the blocks of this memory.
    memory_ = std::make_unique<SampleMemory>(device_->allocator(), stream());
    TROUPE_ASSIGN_OR_RETURN(const nn::Tensor x, Numbers(ShapeOfX(c), dtype));
    TROUPE_ASSIGN_OR_RETURN(const nn::Tensor w, Numbers(ShapeOfW(c), dtype));
    TROUPE_ASSIGN_OR_RETURN(const nn::Tensor y, Numbers(ShapeOfY(c), dtype));
    runs_.push_back(CallOf(c, {x, w, y}, *ops_));
    TROUPE_RETURN_IF_ERROR(runs_.front()());
    void* const operands[] = {x.device_data(), w.device_data(),
                              y.device_data()};
    if (IsMatmul(c)) TROUPE_RETURN_IF_ERROR(AddMatmul(c, dtype, operands));
    if (c.conv) TROUPE_RETURN_IF_ERROR(AddConv(c, dtype, operands));
    return absl::OkStatus();
  }

  absl::StatusOr<KernelTimes> Measure(double seconds) override {
    KernelTimes times;
    const double enough_ms = seconds * 1e3;
    for (double spent_ms = 0; spent_ms < enough_ms;) {
      TROUPE_ASSIGN_OR_RETURN(
          const std::vector<CandidateTimes> samples,
          nn::cuda::TimeCandidates(
              static_cast<int>(runs_.size()),
              [this](int i) { return runs_[i](); }, stream()));
      if (samples[0].empty()) {
        return absl::InternalError("the op failed while it was timed");
      }
      for (float ms : samples[0]) times.ours.push_back(ms * 1e3);
      // The fastest of the library's algorithms counts.
      std::vector<double> best = Fastest(samples);
      times.library.insert(times.library.end(), best.begin(), best.end());
      spent_ms += SpentMs(samples[0]);
    }
    return times;
  }

 private:
  explicit CudaTimer(bool allow_tf32) : allow_tf32_(allow_tf32) {}

  cudaStream_t stream() const { return device_->stream(nn::Queue::kCompute); }

  absl::StatusOr<nn::Tensor> Numbers(const nn::Shape& shape, DType dtype) {
    TROUPE_ASSIGN_OR_RETURN(void* const data,
                            memory_->Numbers(dtype, shape.numel()));
    return nn::Tensor::Borrow(data, shape, dtype, ops_->device());
  }

  absl::Status AddMatmul(const KernelCase& c, DType dtype,
                         void* const (&operands)[3]) {
    TROUPE_ASSIGN_OR_RETURN(
        MatmulPlan* const plan,
        matmuls_->Get(MatmulOf(c, dtype, allow_tf32_), stream()));
    return AddPlan(plan, OperandsOf(c, operands[0], operands[1], operands[2]));
  }

  absl::Status AddConv(const KernelCase& c, DType dtype,
                       void* const (&operands)[3]) {
    const absl::StatusOr<ConvPlan*> plan =
        convs_->Get(ConvOf(c, dtype, allow_tf32_), stream());
    // Ours then computes it differently, for example weights in f32.
    if (absl::IsUnimplemented(plan.status())) return absl::OkStatus();
    TROUPE_RETURN_IF_ERROR(plan.status());
    ConvOperands of_conv;
    of_conv.image = operands[0];
    of_conv.weight = operands[1];
    of_conv.output = operands[2];
    return AddPlan(*plan, of_conv);
  }

  template <typename Plan, typename Operands>
  absl::Status AddPlan(Plan* plan, const Operands& operands) {
    TROUPE_ASSIGN_OR_RETURN(void* const workspace,
                            memory_->Bytes(plan->workspace_bytes()));
    runs_.push_back([this, plan, operands, workspace] {
      return plan->Run(operands, workspace, stream());
    });
    return absl::OkStatus();
  }

  static std::vector<double> Fastest(
      const std::vector<CandidateTimes>& samples) {
    const std::vector<CandidateTimes> library(samples.begin() + 1,
                                              samples.end());
    const int best = nn::cuda::FastestCandidate(library);
    std::vector<double> times;
    if (best < 0) return times;
    for (float ms : library[best]) times.push_back(ms * 1e3);
    return times;
  }

  // Returns the GPU time of one contestant's samples, in milliseconds.
  static double SpentMs(const CandidateTimes& samples) {
    double ms = 0;
    for (float sample : samples) {
      ms += sample * nn::cuda::RunsPerSample(sample);
    }
    return std::max(ms, 0.01);
  }

  const bool allow_tf32_;
  std::string gpu_;
  std::unique_ptr<nn::cuda::CudaDevice> device_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<nn::cuda::MatmulPlans> matmuls_;
  std::unique_ptr<nn::cuda::ConvPlans> convs_;
  std::unique_ptr<SampleMemory> memory_;
  std::vector<Run> runs_;  // ours, then the library's
};

}  // namespace

absl::StatusOr<std::unique_ptr<KernelTimer>> OpenCudaTimer(nn::Device device,
                                                           bool allow_tf32) {
  return CudaTimer::Open(device, allow_tf32);
}

}  // namespace troupe::bench

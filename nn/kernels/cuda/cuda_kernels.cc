#include "nn/kernels/cuda/cuda_kernels.h"

#include <cuda_runtime_api.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cuda/cuda_status.h"
#include "nn/kernels/cuda/device/cuda_device.h"
#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/libraries/library_ops.h"
#include "nn/kernels/held_argument.h"
#include "nn/kernels/kernel_choices.h"
#include "nn/kernels/op.h"

namespace troupe::nn::cuda {
namespace {

using base::CudaStatus;

// Returns "13.0" for 13000.
std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

// Returns "NVIDIA H200, compute 9.0, driver 13.0, CUDA 13.0, cuBLASLt 13.0.2,
// cuDNN 9.19.0, cuDNN frontend 1.32.0": the GPU and library versions for which
// a choice of algorithms is recorded.
absl::StatusOr<std::string> DescribeGpu(int ordinal) {
  cudaDeviceProp properties;
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(cudaGetDeviceProperties(&properties, ordinal),
                 "cudaGetDeviceProperties"));
  int runtime = 0, driver = 0;
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion"));
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(cudaDriverGetVersion(&driver), "cudaDriverGetVersion"));
  return absl::StrCat(properties.name, ", compute ", properties.major, ".",
                      properties.minor, ", driver ", CudaVersion(driver),
                      ", CUDA ", CudaVersion(runtime), ", ",
                      MatmulLibraryName(), ", ", ConvLibraryName(), ", ",
                      AttentionLibraryName());
}

// The allocator of the queue to which ops are enqueued at the moment.
class QueueMemory final : public Allocator {
 public:
  explicit QueueMemory(Allocator& allocator) : allocator_(&allocator) {}

  void Use(Allocator& allocator) { allocator_ = &allocator; }

  Device device() const override { return allocator_->device(); }
  absl::StatusOr<StoragePtr> Allocate(std::size_t bytes) override {
    return allocator_->Allocate(bytes);
  }
  void ReleaseCached() override { allocator_->ReleaseCached(); }
  Stats stats() const override { return allocator_->stats(); }

 private:
  Allocator* allocator_;
};

// The ops that enqueue to a stream at once.
class StreamOps final : public Kernels {
 public:
  static absl::StatusOr<std::unique_ptr<StreamOps>> Open(
      CudaDevice& device, const std::string& gpu,
      const KernelOptions& kernel_options) {
    std::unique_ptr<StreamOps> ops(new StreamOps(device, kernel_options));
    LibraryOptions options;
    options.allocator = &ops->memory_;
    options.choices = &ops->choices_->For(gpu);
    options.warn = [choices = ops->choices_](absl::string_view words) {
      choices->Warn(std::string(words));
    };
    TROUPE_ASSIGN_OR_RETURN(ops->matmuls_, OpenMatmulPlans(options));
    TROUPE_ASSIGN_OR_RETURN(ops->convs_, OpenConvPlans(options));
    BindFamily(ops->own_attention_, &ops->own_);
    TROUPE_ASSIGN_OR_RETURN(ops->attentions_,
                            OpenAttentionPlans(options, ops->own_attention_));
    ops->Bind();
    return ops;
  }

  // Makes later calls enqueue to the stream of `queue`, which must be open.
  void Use(Queue queue) {
    if (queue == queue_) return;
    queue_ = queue;
    own_.stream = library_.stream = device_.stream(queue);
    own_.error = device_.data_error(queue);
    memory_.Use(device_.allocator(queue));
  }

  Allocator& allocator() override { return memory_; }
  std::string Describe() const override { return device().ToString(); }

 private:
  StreamOps(CudaDevice& device, const KernelOptions& options)
      : Kernels({DeviceType::kCuda, device.ordinal()}),
        device_(device),
        memory_(device.allocator()),
        choices_(options.choices != nullptr
                     ? options.choices
                     : std::make_shared<KernelChoices>()) {
    own_.stream = library_.stream = device.stream(queue_);
    own_.allocator = library_.allocator = &memory_;
    own_.error = device.data_error(queue_);
    AttentionKernels::ForEachOp(
        [&](auto op) { (own_attention_.*op).set_device(this->device()); });
  }

  void Bind() {
    library_.matmuls = matmuls_.get();
    library_.convs = convs_.get();
    library_.attentions = attentions_.get();
    library_.own_attention = &own_attention_;
    BindFamilies(*this, &own_, &library_);
  }

  CudaDevice& device_;
  Queue queue_ = Queue::kCompute;
  QueueMemory memory_;
  const std::shared_ptr<KernelChoices> choices_;  // must outlive the plans
  std::unique_ptr<MatmulPlans> matmuls_;
  std::unique_ptr<ConvPlans> convs_;
  CudaOps own_;
  AttentionKernels own_attention_;  // must outlive the plans
  std::unique_ptr<AttentionPlans> attentions_;
  LibraryOps library_;
};

class CudaKernels final : public Kernels {
 public:
  CudaKernels(std::string gpu, std::unique_ptr<CudaDevice> device,
              std::unique_ptr<StreamOps> ops)
      : Kernels({DeviceType::kCuda, device->ordinal()}),
        gpu_(std::move(gpu)),
        device_(std::move(device)),
        ops_(std::move(ops)) {
    ForEachOp([this](auto op) { Route(this->*op, (*ops_).*op); });
  }

  // Closes the device first, because running and held work refers to the ops.
  ~CudaKernels() override { device_->Close(); }

  Allocator& allocator() override {
    return device_->allocator(device_->kernel_queue());
  }
  DeviceQueues* queues() override { return device_.get(); }
  std::string Describe() const override {
    return absl::StrCat(device().ToString(), ", ", gpu_);
  }

 private:
  template <typename... Args>
  struct Bound {
    CudaDevice* device;
    StreamOps* ops;
    const Op<absl::Status(Args...)>* op;
  };

  // Makes calls of `outer` enqueue by `inner`: at once, or when the queue is no
  // longer held. The operands are kept until then.
  template <typename... Args>
  void Route(Op<absl::Status(Args...)>& outer,
             const Op<absl::Status(Args...)>& inner) {
    using ThisOp = Op<absl::Status(Args...)>;
    auto bound = std::make_shared<Bound<Args...>>(
        Bound<Args...>{device_.get(), ops_.get(), &inner});
    outer.BindFunction(
        [](const ThisOp& op, Args... args) -> absl::Status {
          const auto& bound = op.template state<Bound<Args...>>();
          const Queue queue = bound.device->kernel_queue();
          if (bound.device->TakesNow(queue, op.name())) {
            bound.ops->Use(queue);
            const absl::Status status = (*bound.op)(args...);
            if (!status.ok()) bound.device->FailCapture(status);
            return status;
          }
          return bound.device->Give(
              queue, op.name(),
              [queue, ops = bound.ops, inner = bound.op,
               held = std::tuple<HeldArgument<Args>...>(args...)]() mutable {
                ops->Use(queue);
                return std::apply(
                    [inner](auto&... each) { return (*inner)(each...); }, held);
              });
        },
        bound.get());
    bound_.push_back(std::move(bound));
  }

  const std::string gpu_;
  const std::unique_ptr<CudaDevice> device_;
  const std::unique_ptr<StreamOps> ops_;
  std::vector<std::shared_ptr<void>> bound_;
};

}  // namespace

absl::StatusOr<int> CountGpus() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorNoDevice) return 0;
  TROUPE_RETURN_IF_ERROR(CudaStatus(counted, "cudaGetDeviceCount"));
  return count;
}

absl::StatusOr<std::unique_ptr<Kernels>> OpenCudaKernels(
    int ordinal, const KernelOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<CudaDevice> device,
                          CudaDevice::Open(ordinal));
  TROUPE_ASSIGN_OR_RETURN(std::string gpu, DescribeGpu(ordinal));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<StreamOps> ops,
                          StreamOps::Open(*device, gpu, options));
  return std::make_unique<CudaKernels>(std::move(gpu), std::move(device),
                                       std::move(ops));
}

}  // namespace troupe::nn::cuda

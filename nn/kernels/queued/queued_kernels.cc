#include "nn/kernels/queued/queued_kernels.h"

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nn/kernels/held_argument.h"
#include "nn/kernels/op.h"
#include "nn/kernels/queued/queued_device.h"

namespace troupe::nn {
namespace {

template <typename Arg>
HeldArgument<Arg> Hold(const std::remove_reference_t<Arg>& arg) {
  if constexpr (kIsTensor<Arg>) {
    return HostView(arg);
  } else {
    return arg;
  }
}

class QueuedKernels final : public Kernels {
 public:
  QueuedKernels(std::unique_ptr<Kernels> inner,
                std::shared_ptr<GuardedMemory> memory, std::uint64_t seed)
      : Kernels({DeviceType::kQueued, 0}),
        inner_(std::move(inner)),
        device_(QueuedDevice::Create(std::move(memory), seed)) {
    ForEachOp([this](auto op) { EnqueueInstead(this->*op, (*inner_).*op); });
  }

  Allocator& allocator() override {
    return device_->allocator(device_->kernel_queue());
  }
  DeviceQueues* queues() override { return device_.get(); }
  std::string Describe() const override {
    return absl::StrCat(device().ToString(), " of ", inner_->Describe());
  }

 private:
  template <typename... Args>
  struct Bound {
    QueuedDevice* device;
    std::shared_ptr<Kernels> kernels;  // work may outlive the kernel set
    const Op<absl::Status(Args...)>* op;
  };

  // Makes a call of `outer` enqueue a call of `inner` on the memory of its
  // operands.
  template <typename... Args>
  void EnqueueInstead(Op<absl::Status(Args...)>& outer,
                      const Op<absl::Status(Args...)>& inner) {
    using ThisOp = Op<absl::Status(Args...)>;
    auto bound = std::make_shared<Bound<Args...>>(
        Bound<Args...>{device_.get(), inner_, &inner});
    outer.BindFunction(
        [](const ThisOp& op, Args... args) -> absl::Status {
          const auto& bound = op.template state<Bound<Args...>>();
          bound.device->Enqueue(
              bound.device->kernel_queue(),
              [kernels = bound.kernels, inner = bound.op,
               held = std::tuple<HeldArgument<Args>...>(
                   Hold<Args>(args)...)]() mutable {
                return std::apply(
                    [inner](auto&... each) { return (*inner)(each...); }, held);
              });
          return absl::OkStatus();
        },
        bound.get());
    bound_.push_back(std::move(bound));
  }

  const std::shared_ptr<Kernels> inner_;
  const std::shared_ptr<QueuedDevice> device_;
  std::vector<std::shared_ptr<void>> bound_;
};

}  // namespace

std::unique_ptr<Kernels> CreateQueuedKernels(
    std::unique_ptr<Kernels> inner, std::shared_ptr<GuardedMemory> memory,
    std::uint64_t seed) {
  return std::make_unique<QueuedKernels>(std::move(inner), std::move(memory),
                                         seed);
}

Tensor HostView(const Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta()) return tensor.Detached();
  return Tensor::Borrow(tensor.device_data(), tensor.shape(), tensor.dtype(),
                        Device{});
}

}  // namespace troupe::nn

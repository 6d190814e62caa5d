#include "nn/kernels/reference/reference_kernels.h"

#include <string>

#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn {
namespace {

constexpr std::int64_t kGradientRows = 2;

CachingAllocator::Options AllocatorOptions() {
  CachingAllocator::Options options;
  options.device = Device{DeviceType::kReference, 0};
  return options;
}

class ReferenceKernels final : public Kernels {
 public:
  ReferenceKernels()
      : Kernels(Device{DeviceType::kReference, 0}),
        allocator_(AllocatorOptions()) {
    ForEachFamily([](auto& family) { reference::BindFamily(family); });
  }

  CachingAllocator& allocator() override { return allocator_; }
  // A small number, so that small models are computed by rows, too.
  std::int64_t LinearGradientRows(DType, std::int64_t, std::int64_t,
                                  std::int64_t m) const override {
    return m > kGradientRows ? kGradientRows : 0;
  }
  std::string Describe() const override {
    return "reference:0, plain loops in f64, 1 thread";
  }

 private:
  CachingAllocator allocator_;
};

}  // namespace

std::unique_ptr<Kernels> CreateReferenceKernels() {
  return std::make_unique<ReferenceKernels>();
}

}  // namespace troupe::nn

#include "nn/kernels/reference/reference_kernels.h"

#include "nn/kernels/reference/reference_impl.h"

namespace troupe::nn {
namespace reference {
namespace {

CachingAllocator::Options AllocatorOptions() {
  CachingAllocator::Options options;
  options.device = Device{DeviceType::kReference, 0};
  return options;
}

}  // namespace

ReferenceKernels::ReferenceKernels() : allocator_(AllocatorOptions()) {}

std::string ReferenceKernels::Describe() const {
  return "reference:0, plain loops in f64, 1 thread";
}

}  // namespace reference

std::unique_ptr<Kernels> CreateReferenceKernels() {
  return std::make_unique<reference::ReferenceKernels>();
}

}  // namespace troupe::nn

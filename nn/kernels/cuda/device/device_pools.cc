#include "nn/kernels/cuda/device/device_pools.h"

#include <cstddef>
#include <limits>
#include <utility>

namespace troupe::nn::cuda {
namespace {

constexpr std::size_t kAllOfIt = std::numeric_limits<std::size_t>::max();

CachingAllocator::Options OptionsOf(Device device,
                                    std::shared_ptr<MemorySource> source) {
  CachingAllocator::Options options;
  options.cached_bytes_max = kAllOfIt;
  options.device = device;
  options.source = std::move(source);
  return options;
}

}  // namespace

DevicePools::Pool::Pool(int ordinal, std::shared_ptr<MemorySource> source)
    : own(OptionsOf({DeviceType::kCuda, ordinal}, std::move(source))) {}

DevicePools::DevicePools(std::shared_ptr<const Streams> streams)
    : pinned_(std::make_shared<PinnedMemory>(streams->ordinal())),
      source_(std::make_shared<DeviceMemory>(streams)),
      compute_(streams->ordinal(), source_),
      host_(OptionsOf(Device{}, pinned_)) {
  for (int i = 0; i < kCommQueuesMax; ++i) {
    comm_.push_back(std::make_unique<Pool>(streams->ordinal(), source_));
  }
}

}  // namespace troupe::nn::cuda

#include "nn/kernels/device_backends.h"

#include <map>

#include "base/check.h"

namespace troupe::nn {
namespace {

// Made on first use: objects of other files register before main().
std::map<DeviceType, DeviceBackend>& Backends() {
  static auto* const backends = new std::map<DeviceType, DeviceBackend>();
  return *backends;
}

}  // namespace

void SetDeviceBackend(DeviceType type, const DeviceBackend& backend) {
  const bool first = Backends().emplace(type, backend).second;
  TROUPE_CHECK(first, "a program links one kernel set for each device");
}

const DeviceBackend* FindDeviceBackend(DeviceType type) {
  const auto found = Backends().find(type);
  return found == Backends().end() ? nullptr : &found->second;
}

}  // namespace troupe::nn

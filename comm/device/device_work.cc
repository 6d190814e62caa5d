#include "comm/device/device_work.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::comm {

absl::Status DeviceWork::Enqueue(const char* name, std::function<bool(void*)>) {
  return absl::UnimplementedError(
      absl::StrCat(name, ": this device has no streams of its own"));
}

void DeviceWork::LookAfter(std::function<bool()>) {
  TROUPE_CHECK(false, "only a device with streams has something to look after");
}

}  // namespace troupe::comm

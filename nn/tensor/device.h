// Where tensors live and kernels run: "cpu:0", "reference:0", "cuda:3".
//
//   Device device = *Device::Parse("cpu:0");
//   device.ToString();                        // "cpu:0"

#ifndef NN_TENSOR_DEVICE_H_
#define NN_TENSOR_DEVICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::nn {

enum class DeviceType { kCpu, kReference, kCuda, kQueued };

struct Device {
  DeviceType type = DeviceType::kCpu;
  int index = 0;

  // "cpu" means "cpu:0". kInvalidArgument names the text and what is known.
  static absl::StatusOr<Device> Parse(absl::string_view text);
  std::string ToString() const;
  // Whether the host's threads compute, in the host's memory.
  bool is_host() const {
    return type == DeviceType::kCpu || type == DeviceType::kReference;
  }

  friend bool operator==(const Device& a, const Device& b) {
    return a.type == b.type && a.index == b.index;
  }
  friend bool operator!=(const Device& a, const Device& b) { return !(a == b); }
};

}  // namespace troupe::nn

#endif  // NN_TENSOR_DEVICE_H_

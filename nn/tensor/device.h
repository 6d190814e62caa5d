// Devices on which tensors live and kernels run: "cpu:0", "reference:0",
// "cuda:3".
//
//   Device device = *Device::Parse("cpu:0");
//   device.ToString();                        // "cpu:0"
//   Device each = *Device::Parse("cuda");     // a GPU for each rank
//   each.ForRank(/*local_rank=*/2);           // cuda:2

#ifndef NN_TENSOR_DEVICE_H_
#define NN_TENSOR_DEVICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::nn {

enum class DeviceType { kCpu, kReference, kCuda, kQueued };

struct Device {
  // Index of "cuda" without a number: each rank of a process gets its own GPU.
  static constexpr int kOneForEach = -1;

  DeviceType type = DeviceType::kCpu;
  int index = 0;

  // Parses a name. "cpu" means "cpu:0"; "cuda" means one GPU for each rank.
  // kInvalidArgument contains the text and the known names.
  static absl::StatusOr<Device> Parse(absl::string_view text);
  std::string ToString() const;
  // Returns the device of the rank with number `local_rank` in its process.
  Device ForRank(int local_rank) const {
    return {type, index == kOneForEach ? local_rank : index};
  }
  // Whether the host's threads compute on it, in the host's memory.
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

#include "nn/tensor/device.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace troupe::nn {
namespace {

constexpr std::pair<DeviceType, absl::string_view> kNames[] = {
    {DeviceType::kCpu, "cpu"},
    {DeviceType::kReference, "reference"},
    {DeviceType::kCuda, "cuda"},
    {DeviceType::kQueued, "queued"},  // for tests
};

}  // namespace

absl::StatusOr<Device> Device::Parse(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  Device device;
  const bool has_index = text.find(':') != absl::string_view::npos;
  const bool digits = absl::c_all_of(parts.second, absl::ascii_isdigit);
  if (!has_index || (digits && absl::SimpleAtoi(parts.second, &device.index))) {
    for (const auto& [type, name] : kNames) {
      if (name == parts.first) {
        device.type = type;
        if (!has_index && type == DeviceType::kCuda) {
          device.index = kOneForEach;
        }
        return device;
      }
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no device is called \"", text,
                   "\"; write cpu, reference or cuda, then :index"));
}

std::string Device::ToString() const {
  const absl::string_view name = kNames[static_cast<int>(type)].second;
  return index == kOneForEach ? std::string(name)
                              : absl::StrCat(name, ":", index);
}

}  // namespace troupe::nn

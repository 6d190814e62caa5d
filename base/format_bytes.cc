#include "base/format_bytes.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace troupe::base {

std::string FormatBytes(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  double value = static_cast<double>(bytes);
  for (; value >= 1000 && unit < 4; ++unit) value /= 1024;
  return absl::StrCat(
      value < 100 ? std::round(value * 10) / 10 : std::round(value), " ",
      kUnits[unit]);
}

}  // namespace troupe::base

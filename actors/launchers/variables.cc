#include "actors/launchers/variables.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace troupe::actors {

std::string Variables::Text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : found->second;
}

std::string Variables::Show(const std::string& name) const {
  return absl::StrCat(name, "=", Text(name));
}

absl::StatusOr<int> Variables::Number(const std::string& name) const {
  constexpr int kNumberMax = 1'000'000;
  if (!Has(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is not set; set it, or unset the launcher's other variables"));
  }
  int number = 0;
  if (!absl::SimpleAtoi(Text(name), &number) || number < 0 ||
      number > kNumberMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        Show(name), ": must be a whole number from 0 to ", kNumberMax));
  }
  return number;
}

Variables ReadEnvironment(const char* const* environment) {
  Variables variables;
  for (; *environment != nullptr; ++environment) {
    const absl::string_view entry(*environment);
    const std::size_t equals = entry.find('=');
    if (equals == absl::string_view::npos) continue;
    variables.Set(std::string(entry.substr(0, equals)),
                  std::string(entry.substr(equals + 1)));
  }
  return variables;
}

}  // namespace troupe::actors

// Errors about a value that a user has given an option.
//
//   if (options.devices < 1) {
//     return RefuseOption<&TrainerOptions::devices>(options,
//                                                   ": must be at least 1");
//   }
//   // The same: "TrainerOptions.devices = 0: must be at least 1"
//   TROUPE_RETURN_IF_ERROR(AtLeast<&TrainerOptions::devices>(1, options));
//
// They blame the field (base/field_error.h).

#ifndef TROUPE_TRAINER_OPTION_ERROR_H_
#define TROUPE_TRAINER_OPTION_ERROR_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/field_error.h"
#include "troupe/trainer_options.h"

namespace troupe {

// Returns a value as the user writes it.
template <typename T>
std::string OptionText(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return absl::StrCat("\"", value, "\"");
  } else if constexpr (std::is_same_v<T, Portion>) {
    return std::visit([](auto number) { return OptionText(number); }, value);
  } else {
    return absl::StrCat(value);
  }
}

// Returns kInvalidArgument: "TrainerOptions.devices = 0", and the words.
template <auto kField, typename Options>
absl::Status RefuseOption(const Options& options, absl::string_view words) {
  return base::FieldError<kField>(absl::StrCat(
      base::FieldName<kField>(), " = ", OptionText(options.*kField), words));
}

template <auto kField, typename Options>
absl::Status AtLeast(std::int64_t least, const Options& options) {
  if (options.*kField >= least) return absl::OkStatus();
  return RefuseOption<kField>(options,
                              absl::StrCat(": must be at least ", least));
}

}  // namespace troupe

#endif  // TROUPE_TRAINER_OPTION_ERROR_H_

// Checks that the options of all optimizers share.
//
//   struct Options {
//     double lr = 0.1;
//   } options;
//   absl::Status status = CheckNotNegative<&Options::lr>(options);
//
// Errors are kInvalidArgument and name the field (base/field_error.h).

#ifndef NN_OPTIM_OPTION_CHECKS_H_
#define NN_OPTIM_OPTION_CHECKS_H_

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"

namespace troupe::nn {

template <auto kField, typename Options>
absl::Status RefuseValue(const Options& options, absl::string_view wanted) {
  return base::FieldError<kField>(absl::StrCat(
      base::FieldName<kField>(), " = ", options.*kField, ": must be ", wanted));
}

template <auto kField, typename Options>
absl::Status CheckFinite(const Options& options) {
  if (std::isfinite(options.*kField)) return absl::OkStatus();
  return RefuseValue<kField>(options, "finite");
}

template <auto kField, typename Options>
absl::Status CheckNotNegative(const Options& options) {
  if (!std::isfinite(options.*kField)) return CheckFinite<kField>(options);
  if (options.*kField >= 0) return absl::OkStatus();
  return RefuseValue<kField>(options, "at least 0");
}

// Checks that the value is at least 0 and below 1.
template <auto kField, typename Options>
absl::Status CheckBelowOne(const Options& options) {
  if (options.*kField >= 0 && options.*kField < 1) return absl::OkStatus();
  return RefuseValue<kField>(options, "at least 0 and below 1");
}

}  // namespace troupe::nn

#endif  // NN_OPTIM_OPTION_CHECKS_H_

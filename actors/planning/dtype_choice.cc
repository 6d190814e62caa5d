#include "actors/planning/dtype_choice.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

// Part of a step's time that another dtype must save to replace an earlier
// candidate.
constexpr double kLeastGain = 0.05;

JobSpec InDType(const JobSpec& spec, nn::DType dtype) {
  JobSpec closed = spec;
  closed.open_dtype.reset();
  spec.open_dtype->set(dtype, closed);
  return closed;
}

absl::StatusOr<nn::DType> Fastest(const JobSpec& spec) {
  const OpenDType& open = *spec.open_dtype;
  nn::DType chosen = open.candidates[0];
  if (open.measure == nullptr) return chosen;
  double least = 0;
  std::vector<std::string> times;
  for (const nn::DType dtype : open.candidates) {
    TROUPE_ASSIGN_OR_RETURN(const double seconds,
                            open.measure(InDType(spec, dtype)));
    times.push_back(
        absl::StrFormat("%s %.3g ms", nn::DTypeName(dtype), 1e3 * seconds));
    if (least > 0 && seconds > (1 - kLeastGain) * least) continue;
    least = seconds;
    chosen = dtype;
  }
  if (spec.note != nullptr) {
    spec.note(absl::StrCat("precision ", nn::DTypeName(chosen),
                           ": a step of one rank takes ",
                           absl::StrJoin(times, ", ")));
  }
  return chosen;
}

}  // namespace

absl::StatusOr<JobSpec> WithDType(const JobSpec& spec,
                                  const pipeline::Plan* plan) {
  const OpenDType& open = *spec.open_dtype;
  if (open.candidates.empty() || open.set == nullptr) {
    return absl::InvalidArgumentError(
        "JobSpec::open_dtype has no candidates, or nothing that sets one; give "
        "both");
  }
  if (plan != nullptr) return InDType(spec, plan->data_dtype);
  TROUPE_ASSIGN_OR_RETURN(const nn::DType dtype, Fastest(spec));
  return InDType(spec, dtype);
}

}  // namespace troupe::actors

#include "actors/engine/step_in_flight.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/table/action_rules.h"

namespace troupe::actors {

absl::Status CollectiveError(const StepInFlight& step, int id,
                             const absl::Status& why) {
  if (!absl::IsFailedPrecondition(why) && !absl::IsDeadlineExceeded(why)) {
    return why;
  }
  const std::string part =
      pipeline::PartOf(step.ActionAt(id), step.cursor.table().chunks());
  return absl::Status(why.code(), absl::StrCat("step ", step.step + 1, ", ",
                                               part, ": ", why.message()));
}

absl::StatusOr<StepLosses> StepLosses::Create(nn::Kernels& kernels,
                                              const StepLoss::Options& options,
                                              bool overlap) {
  StepLosses losses;
  for (int turn = 0; turn < (overlap ? 2 : 1); ++turn) {
    TROUPE_ASSIGN_OR_RETURN(StepLoss loss, StepLoss::Create(kernels, options));
    losses.losses_.push_back(std::move(loss));
  }
  return losses;
}

absl::StatusOr<std::optional<LossBits>> StepLosses::Take() {
  for (std::size_t before = losses_.size() - 1; before > 0; --before) {
    StepLoss& earlier = losses_[(turn_ + before) % losses_.size()];
    TROUPE_ASSIGN_OR_RETURN(std::optional<LossBits> bits, earlier.Take());
    if (bits.has_value()) return bits;
  }
  return present().Take();
}

}  // namespace troupe::actors

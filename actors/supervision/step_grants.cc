#include "actors/supervision/step_grants.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace troupe::actors {

absl::Status StepGrants::CheckRank(int rank, absl::string_view what) const {
  if (rank >= 0 && rank < ranks()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "rank ", rank, " reports ", what, ", but the job has ranks 0 to ",
      ranks() - 1, "; run the same build of Troupe in all processes"));
}

std::int64_t StepGrants::Committed() const {
  return *std::min_element(done_.begin(), done_.end());
}

std::optional<std::int64_t> StepGrants::Next() {
  if (halted_) return std::nullopt;
  const std::int64_t until =
      std::min(boundary_, Committed() + 2 * window_.steps());
  if (until < granted_ + window_.steps() && until != boundary_) {
    return std::nullopt;
  }
  if (until == granted_) return std::nullopt;
  granted_ = until;
  return until;
}

void StepGrants::Commit(int rank, std::int64_t steps, double seconds) {
  done_[rank] = steps;
  window_.Adapt(Committed(), seconds);
}

std::string StepGrants::ToString() const {
  std::string where;
  for (std::size_t rank = 0; rank < done_.size(); ++rank) {
    absl::StrAppend(&where, rank ? ", " : "", "rank ", rank, " has done ",
                    done_[rank]);
  }
  return absl::StrCat(where, " of ", granted_, " granted steps");
}

}  // namespace troupe::actors

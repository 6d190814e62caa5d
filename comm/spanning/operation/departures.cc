#include "comm/spanning/operation/departures.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace troupe::comm::internal {

absl::Status Departures::Before(std::uint64_t seq) const {
  std::vector<int> gone;
  for (const auto& [rank, joined] : joined_) {
    if (joined <= seq) gone.push_back(rank);
  }
  if (gone.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      Ranks(gone), " left the group before collective ", seq, " of it"));
}

bool Departures::HasDeparted(int member) const {
  const std::vector<int>& ranks = layout_.ranks_of(member);
  return std::all_of(ranks.begin(), ranks.end(),
                     [this](int rank) { return joined_.count(rank) > 0; });
}

std::vector<int> Departures::ranks() const {
  std::vector<int> ranks;
  for (const auto& [rank, joined] : joined_) ranks.push_back(rank);
  return ranks;
}

}  // namespace troupe::comm::internal

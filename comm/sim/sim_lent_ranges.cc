#include "comm/sim/sim_lent_ranges.h"

namespace troupe::comm {

bool SimLentRanges::Lend(int from, int to, const SharedRange& range) {
  const auto [loan, fresh] =
      loans_.emplace(std::tuple(from, to, range.id), Loan{range});
  if (fresh) loan->second.due = at_once_ ? clock_.now() : clock_.AfterDelay();
  return loan->second.due <= clock_.now();
}

void SimLentRanges::TakeBack(int from, int to, std::uint64_t id) {
  loans_.erase({from, to, id});
}

std::shared_ptr<char> SimLentRanges::Borrow(int by, int from, std::uint64_t id,
                                            std::uint64_t offset,
                                            std::size_t bytes) const {
  const auto loan = loans_.find({from, by, id});
  if (loan == loans_.end() || loan->second.due > clock_.now()) return nullptr;
  const SharedRange& range = loan->second.range;
  if (offset > range.bytes || bytes > range.bytes - offset) return nullptr;
  // Owned by the process that lends it.
  return {std::shared_ptr<void>(), range.data + offset};
}

}  // namespace troupe::comm

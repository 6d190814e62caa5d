#include "comm/spanning/operation/operation_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace troupe::comm::internal {

OperationTable::OperationTable(const GroupLayout* layout, int in_flight_max)
    : layout_(*layout),
      in_flight_max_(static_cast<std::uint64_t>(in_flight_max)),
      next_(layout->ranks_of(layout->self()).size()) {}

absl::Status OperationTable::CheckRoom(int place) const {
  const std::uint64_t head =
      ops_.empty() ? next_[place] : std::min(ops_.begin()->first, next_[place]);
  const std::uint64_t in_flight = next_[place] - head;
  if (in_flight < in_flight_max_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "rank ", layout_.ranks_of(layout_.self())[place], " has ", in_flight,
      " collectives in flight, as many as in_flight_max allows; the oldest is "
      "number ",
      head, "; wait for it"));
}

bool OperationTable::MayBeAnnounced(std::uint64_t seq) const {
  if (seq >= *std::min_element(next_.begin(), next_.end()) + in_flight_max_) {
    return false;
  }
  return ops_.count(seq) > 0 ||
         seq >= *std::max_element(next_.begin(), next_.end());
}

OpPtr OperationTable::FindOrMake(std::uint64_t seq) {
  OpPtr& op = ops_[seq];
  if (op != nullptr) return op;
  if (spare_ == nullptr) return op = std::make_shared<Operation>(seq, layout_);
  op = std::move(spare_);
  op->seq = seq;
  return op;
}

OpPtr OperationTable::Find(std::uint64_t seq) const {
  const auto found = ops_.find(seq);
  return found == ops_.end() ? nullptr : found->second;
}

void OperationTable::Recycle(OpPtr op) {
  if (op.use_count() > 1 || spare_ != nullptr) return;
  op->Reuse();
  spare_ = std::move(op);
}

}  // namespace troupe::comm::internal

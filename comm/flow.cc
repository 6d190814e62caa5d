#include "comm/flow.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::comm {
namespace {

// Returns the offset of each rank's part.
std::vector<std::int64_t> Begins(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> begins;
  std::int64_t begin = 0;
  for (std::int64_t count : counts) {
    begins.push_back(begin);
    begin += count;
  }
  return begins;
}

absl::StatusOr<std::vector<Block>> FlowByCounts(
    absl::Span<const Collective* const> ranks) {
  const int n = static_cast<int>(ranks.size());
  std::vector<std::vector<std::int64_t>> sent_at(n), received_at(n);
  for (int r = 0; r < n; ++r) {
    if (ranks[r] == nullptr) continue;
    sent_at[r] = Begins(ranks[r]->send_counts);
    received_at[r] = Begins(ranks[r]->recv_counts);
  }
  std::vector<Block> blocks;
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      const Collective* const sender = ranks[from];
      const Collective* const receiver = ranks[to];
      if (sender == nullptr && receiver == nullptr) continue;
      const std::int64_t count = sender != nullptr
                                     ? sender->send_counts[to]
                                     : receiver->recv_counts[from];
      if (receiver != nullptr && receiver->recv_counts[from] != count) {
        return UnequalCounts(from, count, to, receiver->recv_counts[from]);
      }
      if (count == 0) continue;
      blocks.push_back({from, to, count,
                        sender != nullptr ? sent_at[from][to] : 0,
                        receiver != nullptr ? received_at[to][from] : 0});
    }
  }
  return blocks;
}

}  // namespace

Block EvenFlow::At(std::int64_t i) const {
  const bool cuts_input = rule_->input == Extent::kBlockPerRank;
  const bool cuts_range = rule_->range == Extent::kBlockPerRank;
  // Rank r's input fills block r of a range that has n; rank s gets block s of
  // an input that has n.
  const std::int64_t r = cuts_input && cuts_range ? i / ranks_ : i;
  const std::int64_t s = cuts_input && cuts_range ? i % ranks_ : i;
  Block block;
  block.count = count_;
  if (rule_->reduces) {
    block.from = ranks_ == 1 ? 0 : Block::kAll;
  } else {
    block.from =
        rule_->gives == Participants::kRoot ? root_ : static_cast<int>(r);
  }
  if (rule_->gets == Participants::kRoot) {
    block.to = root_;
  } else {
    block.to = cuts_input ? static_cast<int>(s) : Block::kAll;
  }
  if (cuts_input) block.from_at = s * count_;
  if (cuts_range) block.to_at = r * count_;
  return block;
}

absl::StatusOr<std::vector<Block>> FlowOf(
    absl::Span<const Collective* const> ranks) {
  const Collective* known = nullptr;
  for (const Collective* rank : ranks) {
    if (rank != nullptr) known = rank;
  }
  TROUPE_CHECK(known != nullptr, "one rank at least is known");
  if (known->by_counts()) return FlowByCounts(ranks);
  std::vector<Block> blocks;
  if (!RuleOf(known->kind).moves_data()) return blocks;
  const int n = static_cast<int>(ranks.size());
  const EvenFlow flow(known->kind, known->root, known->counted().numel(), n);
  if (flow.count() == 0) return blocks;
  const auto is_known = [&](int rank) {
    return rank == Block::kAll || ranks[rank] != nullptr;
  };
  for (std::int64_t i = 0; i < flow.blocks(); ++i) {
    const Block block = flow.At(i);
    if (is_known(block.from) || is_known(block.to)) blocks.push_back(block);
  }
  return blocks;
}

absl::Status UnequalCounts(int from, std::int64_t sent, int to,
                           std::int64_t expected) {
  return absl::FailedPreconditionError(absl::StrCat(
      "all_to_all: rank ", from, " sends ", sent, " elements to rank ", to,
      ", which expects ", expected, "; make both counts equal"));
}

}  // namespace troupe::comm

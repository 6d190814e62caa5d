#include "comm/spanning/plan/transfer_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm/spanning/plan/algorithm.h"

namespace troupe::comm::internal {
namespace {

// PackSettings() has 32 bits for eager_bytes, then 2 for two_step, then 30 for
// piece_bytes, which Fabric::Make limits to far less.
constexpr int kEagerShift = 32, kTwoStepShift = 30;

}  // namespace

std::uint64_t PackSettings(const TransferSettings& settings, int member) {
  const std::uint64_t two_step =
      settings.two_step ? 1 + std::uint64_t{*settings.two_step} : 0;
  return static_cast<std::uint64_t>(settings.eager_bytes[member])
             << kEagerShift |
         two_step << kTwoStepShift | settings.piece_bytes;
}

std::string DescribeSettings(std::uint64_t packed) {
  constexpr const char* kTwoStep[] = {"unset", "false", "true", "unknown"};
  constexpr std::uint64_t kPieceMask = (std::uint64_t{1} << kTwoStepShift) - 1;
  return absl::StrCat("eager_bytes = ", packed >> kEagerShift,
                      ", piece_bytes = ", packed & kPieceMask,
                      ", two_step = ", kTwoStep[packed >> kTwoStepShift & 3]);
}

TransferPlan::TransferPlan(const GroupLayout& layout, std::vector<Block> blocks,
                           std::size_t element_bytes,
                           const TransferSettings& settings)
    : layout_(layout), element_bytes_(element_bytes), settings_(settings) {
  std::sort(blocks.begin(), blocks.end(),
            [](const Block& a, const Block& b) { return KeyOf(a) < KeyOf(b); });
  for (const Block& block : blocks) {
    PlannedBlock planned;
    planned.block = block;
    if (block.from != Block::kAll)
      planned.source = layout.member_of(block.from);
    planned.wants.assign(layout.members(), block.to == Block::kAll);
    if (block.to != Block::kAll)
      planned.wants[layout.member_of(block.to)] = true;
    blocks_.push_back(std::move(planned));
    Cut(static_cast<int>(blocks_.size()) - 1);
  }
  for (int m = 0; m < layout.members(); ++m) {
    bytes_to_.push_back(SumOfParts(layout.self(), m));
    bytes_from_.push_back(SumOfParts(m, layout.self()));
  }
}

void TransferPlan::Cut(int block) {
  PlannedBlock& planned = blocks_[block];
  const std::int64_t count = planned.block.count;
  const int members = layout_.members();
  BlockShape shape;
  shape.tree = planned.source == kTree;
  shape.targets = static_cast<int>(
      std::count(planned.wants.begin(), planned.wants.end(), true));
  shape.members = members;
  shape.bytes = static_cast<std::size_t>(count) * element_bytes_;
  planned.first_piece = pieces();
  if (ChooseAlgorithm(shape, settings_.two_step) == Algorithm::kExchange) {
    CutRange(block, 0, count, kEveryone);
  } else {
    const std::int64_t part = (count + members - 1) / members;
    for (int m = 0; m < members; ++m) {
      CutRange(block, std::min(m * part, count),
               std::min((m + 1) * part, count), m);
    }
  }
  planned.end_piece = pieces();
}

void TransferPlan::CutRange(int block, std::int64_t begin, std::int64_t end,
                            int owner) {
  const auto step = static_cast<std::int64_t>(
      std::max<std::size_t>(settings_.piece_bytes / element_bytes_, 1));
  for (; begin < end; begin += step) {
    pieces_.push_back({block, begin, std::min(step, end - begin), owner});
  }
}

bool TransferPlan::Computes(int i, int member) const {
  const PlannedBlock& block = block_of(i);
  if (block.source == member) return true;
  return pieces_[i].owner == kEveryone ? block.wants[member]
                                       : pieces_[i].owner == member;
}

bool TransferPlan::SendsParts(int i, int from, int to) const {
  const int source = block_of(i).source;
  return from != to && (source == kTree || source == from) && Computes(i, to);
}

bool TransferPlan::Forwards(int i, int from, int to) const {
  const PlannedBlock& block = block_of(i);
  return pieces_[i].owner == from && from != to && to != block.source &&
         block.wants[to];
}

int TransferPlan::ValueFrom(int i, int member) const {
  const int source = block_of(i).source;
  const int owner = pieces_[i].owner;
  if (source != kTree && SendsParts(i, source, member)) return source;
  if (owner != kEveryone && Forwards(i, owner, member)) return owner;
  return -1;
}

int TransferPlan::FramesFor(int i, int member) const {
  if (ValueFrom(i, member) >= 0) return 1;
  if (block_of(i).source != kTree || !Computes(i, member)) return 0;
  return static_cast<int>(layout_.nodes().size() -
                          layout_.nodes_of(member).size());
}

void TransferPlan::ForEachPart(
    int from, int to, const std::function<void(int piece, int node)>& f) const {
  for (int i = 0; i < pieces(); ++i) {
    if (!SendsParts(i, from, to)) continue;
    if (block_of(i).source == from) {
      f(i, -1);
    } else {
      for (int node : layout_.nodes_of(from)) f(i, node);
    }
  }
}

std::size_t TransferPlan::SumOfParts(int from, int to) const {
  std::size_t bytes = 0;
  ForEachPart(from, to, [&](int piece, int) { bytes += BytesOf(piece); });
  return bytes;
}

int TransferPlan::Find(std::uint32_t key, std::uint64_t begin) const {
  const auto block =
      std::lower_bound(blocks_.begin(), blocks_.end(), key,
                       [](const PlannedBlock& a, std::uint32_t b) {
                         return KeyOf(a.block) < b;
                       });
  if (block == blocks_.end() || KeyOf(block->block) != key) return -1;
  const auto first = pieces_.begin() + block->first_piece;
  const auto end = pieces_.begin() + block->end_piece;
  const auto piece =
      std::lower_bound(first, end, begin, [](const Piece& a, std::uint64_t b) {
        return static_cast<std::uint64_t>(a.begin) < b;
      });
  if (piece == end || static_cast<std::uint64_t>(piece->begin) != begin) {
    return -1;
  }
  return static_cast<int>(piece - pieces_.begin());
}

}  // namespace troupe::comm::internal

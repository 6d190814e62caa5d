#include "comm/spanning/operation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "comm/flow.h"
#include "comm/signature.h"

namespace troupe::comm::internal {
namespace {

// PackReplicas() has 8 bits for the count, then 4 for each dtype.
constexpr int kReplicasMax = 14;
// Limit on the size of a collective that is computed at once, by the thread
// that finds its inputs complete.
constexpr std::size_t kSmallBytes = std::size_t{64} << 10;

// Returns the limit on pieces whose parts a process sends before they are
// computed. All processes send the pieces for a target in the same order, so
// that no two wait for each other. With few peers the limit is the number of
// pieces that a slow link with full queues has in transit until a credit
// returns: with fewer, an urgent collective would share the link with others.
int PiecesAheadMax(const GroupLayout& layout) {
  return std::max(16, 64 / std::max(1, layout.members() - 1));
}

}  // namespace

Operation::Operation(std::uint64_t seq, const GroupLayout& layout)
    : seq(seq),
      ranks(layout.ranks_of(layout.self()).size()),
      notes(layout.members()),
      let_go(layout.members()) {}

void Operation::Reuse() {
  std::fill(ranks.begin(), ranks.end(), Rank());
  first_place = -1;
  armed_count = notes_here = 0;
  has_events = false;
  for (Note& note : notes) note = Note();
  planned = announced = begun = differs = lends = false;
  direct.reset();
  std::fill(let_go.begin(), let_go.end(), false);
  done.store(false, std::memory_order_relaxed);
}

void Operation::Join(int place, const Collective& collective,
                     const Event& event) {
  Rank& rank = ranks[place];
  rank.joined = true;
  rank.collective = collective;
  rank.signature = Pack(collective);
  rank.event = event;
  has_events |= !event.ready();
  if (first_place < 0) first_place = place;
}

absl::Status Operation::MakePlan(const GroupLayout& layout,
                                 const TransferSettings& settings) {
  inputs.resize(layout.size(), nullptr);
  outputs.resize(layout.size(), nullptr);
  // A tensor that the rank does not need may be of any kind.
  const auto memory = [](const nn::Tensor& tensor) {
    return tensor.host_accessible() && tensor.numel() > 0
               ? static_cast<char*>(tensor.raw())
               : nullptr;
  };
  for (int rank : layout.ranks_of(layout.self())) {
    const Collective& collective = ranks[layout.place_of(rank)].collective;
    if (!RuleOf(collective.kind).moves_data()) continue;
    inputs[rank] = memory(collective.input.defined() ? collective.input
                                                     : collective.range);
    outputs[rank] = memory(collective.range);
  }
  const std::uint64_t signature = ranks[first_place].signature;
  // Counts are not in the signature.
  if (plan != nullptr && planned_as == signature && !first().by_counts()) {
    ResetPieces(layout);
    return absl::OkStatus();
  }
  planned_as = signature;
  std::vector<const Collective*> known(layout.size(), nullptr);
  for (int rank : layout.ranks_of(layout.self())) {
    known[rank] = &ranks[layout.place_of(rank)].collective;
  }
  TROUPE_ASSIGN_OR_RETURN(std::vector<Block> blocks, FlowOf(known));
  if (RuleOf(first().kind).moves_data()) {
    reduction = {first().op, first().counted().dtype(), layout.size()};
    element_bytes = nn::SizeOf(reduction.dtype);
  }
  plan = std::make_unique<TransferPlan>(layout, std::move(blocks),
                                        element_bytes, settings);
  targets.clear();
  for (int b = 0; b < plan->blocks(); ++b) {
    const int to = plan->block(b).block.to;
    targets.emplace_back();
    for (int rank : layout.ranks_of(layout.self())) {
      if (to == Block::kAll || to == rank) targets.back().push_back(rank);
    }
  }
  MakePieces(layout);
  return absl::OkStatus();
}

void Operation::MakePieces(const GroupLayout& layout) {
  const int self = layout.self();
  std::size_t bytes = 0;
  pieces.clear();
  order.clear();
  next_in_order = 0;
  for (int i = 0; i < plan->pieces(); ++i) {
    PieceState& piece = pieces.emplace_back();
    bytes += plan->BytesOf(i);
    piece.frames_missing = plan->FramesFor(i, self);
    if (plan->block_of(i).source == TransferPlan::kTree &&
        plan->Computes(i, self)) {
      piece.nodes.resize(layout.nodes().size());
    }
    for (int m = 0; m < layout.members(); ++m) {
      if (!plan->SendsParts(i, self, m) || plan->eager(self, m)) continue;
      order.push_back(i);
      break;
    }
  }
  MakeWindows(layout);
  pieces_left = plan->pieces();
  small = order.empty() && bytes <= kSmallBytes;
  OrderSends(layout);
}

void Operation::ResetPieces(const GroupLayout& layout) {
  for (int i = 0; i < plan->pieces(); ++i) {
    PieceState& piece = pieces[i];
    std::vector<PieceState::Arrived> nodes = std::move(piece.nodes);
    std::fill(nodes.begin(), nodes.end(), PieceState::Arrived());
    piece = PieceState();
    piece.nodes = std::move(nodes);
    piece.frames_missing = plan->FramesFor(i, layout.self());
  }
  next_in_order = 0;
  MakeWindows(layout);
  pieces_left = plan->pieces();
}

// All processes know the number of pieces, so the last ones need no credit, and
// no credit arrives after the sender has finished.
void Operation::MakeWindows(const GroupLayout& layout) {
  const int self = layout.self();
  windows.assign(layout.members(), Window());
  pieces_ahead_max = PiecesAheadMax(layout);
  for (int m = 0; m < layout.members(); ++m) {
    int out = 0, in = 0;
    for (int i = 0; i < plan->pieces(); ++i) {
      if (Stages(i, self, m)) ++out;
      if (Stages(i, m, self)) ++in;
    }
    windows[m].credits_expected = std::max(out - pieces_ahead_max, 0);
    windows[m].credits_due = std::max(in - pieces_ahead_max, 0);
  }
}

bool Operation::MayGo(int i, int self) const {
  for (int m = 0; m < static_cast<int>(windows.size()); ++m) {
    if (windows[m].ahead >= pieces_ahead_max && Stages(i, self, m))
      return false;
  }
  return true;
}

void Operation::Gone(int i, int self) {
  for (int m = 0; m < static_cast<int>(windows.size()); ++m) {
    if (Stages(i, self, m)) ++windows[m].ahead;
  }
}

// Orders pieces so that every process begins with those that the next one
// computes, and not all send to the same process.
void Operation::OrderSends(const GroupLayout& layout) {
  const int members = layout.members();
  std::vector<std::pair<int, int>> keys(plan->pieces());
  for (int i = 0; i < plan->pieces(); ++i) {
    const TransferPlan::Piece& piece = plan->piece(i);
    int to = piece.owner;
    const std::vector<bool>& wants = plan->block_of(i).wants;
    if (to == TransferPlan::kEveryone &&
        std::count(wants.begin(), wants.end(), true) == 1) {
      to = static_cast<int>(std::find(wants.begin(), wants.end(), true) -
                            wants.begin());
    }
    const bool goes_on = i > 0 && plan->piece(i - 1).block == piece.block &&
                         plan->piece(i - 1).owner == piece.owner;
    keys[i] = {goes_on ? keys[i - 1].first + 1 : 0,
               to < 0 ? 0 : (to - layout.self() + members) % members};
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return keys[a] < keys[b]; });
}

const char* Operation::Input(int i, int rank) const {
  return InputOf(plan->piece(i).block, plan->piece(i).begin, rank);
}

char* Operation::Output(int i, int rank) const {
  return OutputOf(plan->piece(i).block, plan->piece(i).begin, rank);
}

const char* Operation::InputOf(int block, std::int64_t at, int rank) const {
  return inputs[rank] + (plan->block(block).block.from_at + at) *
                            static_cast<std::int64_t>(element_bytes);
}

char* Operation::OutputOf(int block, std::int64_t at, int rank) const {
  return outputs[rank] + (plan->block(block).block.to_at + at) *
                             static_cast<std::int64_t>(element_bytes);
}

std::uint64_t PackReplicas(const Collective& collective) {
  if (!RuleOf(collective.kind).updates) return 0;
  const absl::Span<const nn::Tensor> replicas = collective.update->replicas();
  std::uint64_t packed = std::min<std::size_t>(replicas.size(), 255);
  for (std::size_t i = 0; i < replicas.size() && i < kReplicasMax; ++i) {
    packed |= static_cast<std::uint64_t>(replicas[i].dtype()) << (8 + 4 * i);
  }
  return packed;
}

std::string DescribeReplicas(std::uint64_t packed) {
  const int count = static_cast<int>(packed & 0xff);
  if (count == 0) return "no replicas";
  std::vector<std::string> names;
  for (int i = 0; i < std::min(count, kReplicasMax); ++i) {
    const auto dtype = static_cast<nn::DType>(packed >> (8 + 4 * i) & 0xf);
    names.emplace_back(dtype > nn::DType::kU8 ? "?" : nn::DTypeName(dtype));
  }
  if (count > kReplicasMax) names.push_back(absl::StrCat(count - kReplicasMax));
  return absl::StrCat(absl::StrJoin(names, " and "), " replicas");
}

}  // namespace troupe::comm::internal

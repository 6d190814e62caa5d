#include "comm/spanning/references.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/flow.h"
#include "comm/spanning/frames/wire.h"

namespace troupe::comm::internal {
namespace {

// Decides equally in all processes: collectives whose data is too large for
// notes.
bool Lendable(const GroupContext& context, const Operation& op) {
  const TransferPlan& plan = *op.plan;
  if (op.first().by_counts() || plan.pieces() == 0) return false;
  const bool shares = plan.piece(0).owner != TransferPlan::kEveryone;
  const std::size_t bytes =
      static_cast<std::size_t>(op.operands.BytesOf(plan.block(0).block.count)) /
      (shares ? context.layout().members() : 1);
  return bytes >
         context.board().options().eager_bytes.value_or(kEagerBytesDefault);
}

// Returns whether `rank` has the input of a block.
bool Reads(const Block& block, int rank) {
  return block.from == Block::kAll || block.from == rank;
}

}  // namespace

std::string LendRanges(const GroupContext& context, const Operation& op) {
  if (context.board().options().shared_memory == nullptr ||
      !Lendable(context, op)) {
    return "";
  }
  const TransferPlan& plan = *op.plan;
  const GroupLayout& layout = context.layout();
  const std::vector<int>& here = context.ranks_here();
  std::vector<int> peers;
  for (int m = 0; m < layout.members(); ++m) {
    if (m != layout.self()) peers.push_back(layout.process_of(m));
  }
  std::vector<Reference> references(2 * here.size());
  const auto lend = [&](const char* data, std::int64_t elements,
                        Reference* reference) {
    const std::optional<Reference> lent = context.board().Lend(
        data, static_cast<std::size_t>(op.operands.BytesOf(elements)), peers);
    if (lent) *reference = *lent;
    return lent.has_value();
  };
  for (int b = 0; b < plan.blocks(); ++b) {
    const Block& block = plan.block(b).block;
    const bool shared = op.SharedByAll(b);
    for (std::size_t place = 0; place < here.size(); ++place) {
      const int rank = here[place];
      if (!Reads(block, rank)) continue;
      Reference* const both = &references[2 * place];
      const char* const input = op.operands.input(rank);
      if (!lend(input, block.from_at + block.count, both)) return "";
      if (!shared) continue;
      if (!lend(op.operands.output(rank), block.count, both + 1)) return "";
    }
  }
  return std::string(reinterpret_cast<const char*>(references.data()),
                     references.size() * sizeof(Reference));
}

absl::Status BorrowRanges(const GroupContext& context, Operation* op,
                          int member) {
  const GroupLayout& layout = context.layout();
  const std::vector<int>& theirs = layout.ranks_of(member);
  std::vector<Reference> references(2 * theirs.size());
  const absl::string_view payload = op->notes[member].payload;
  const std::size_t bytes = references.size() * sizeof(Reference);
  std::memcpy(references.data(), payload.data() + payload.size() - bytes,
              bytes);
  const auto borrow = [&](const Reference& reference, std::int64_t elements,
                          std::shared_ptr<char>* to) {
    *to = context.board().Borrow(
        layout.process_of(member), reference,
        static_cast<std::size_t>(op->operands.BytesOf(elements)));
    return *to != nullptr
               ? absl::OkStatus()
               : context.Broke(member,
                               "a reference to memory that it does not lend");
  };
  for (int b = 0; b < op->plan->blocks(); ++b) {
    if (!op->plan->block(b).wants[context.self()]) continue;
    const Block& block = op->plan->block(b).block;
    for (std::size_t place = 0; place < theirs.size(); ++place) {
      const int rank = theirs[place];
      if (!Reads(block, rank)) continue;
      const Reference* const both = &references[2 * place];
      std::shared_ptr<char> memory;
      TROUPE_RETURN_IF_ERROR(
          borrow(both[0], block.from_at + block.count, &memory));
      op->direct.SetInput(rank, std::move(memory));
      if (!op->SharedByAll(b)) continue;
      TROUPE_RETURN_IF_ERROR(borrow(both[1], block.count, &memory));
      op->direct.SetOutput(rank, std::move(memory));
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe::comm::internal

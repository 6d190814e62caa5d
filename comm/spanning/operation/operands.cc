#include "comm/spanning/operation/operands.h"

#include "comm/collective_kinds.h"

namespace troupe::comm::internal {
namespace {

// A tensor that the rank does not need may be of any kind.
char* MemoryOf(const nn::Tensor& tensor) {
  return tensor.host_accessible() && tensor.numel() > 0
             ? static_cast<char*>(tensor.raw())
             : nullptr;
}

}  // namespace

void Operands::SetMemory(int rank, const Collective& collective) {
  if (!RuleOf(collective.kind).moves_data()) return;
  inputs_[rank] = MemoryOf(collective.input.defined() ? collective.input
                                                      : collective.range);
  outputs_[rank] = MemoryOf(collective.range);
}

void Operands::SetKind(const Collective& collective, int ranks) {
  if (!RuleOf(collective.kind).moves_data()) return;
  reduction_ = {collective.op, collective.counted().dtype(), ranks};
  element_bytes_ = nn::SizeOf(reduction_.dtype);
}

void Operands::SetTargets(const TransferPlan& plan, const GroupLayout& layout) {
  targets_.clear();
  for (int b = 0; b < plan.blocks(); ++b) {
    const int to = plan.block(b).block.to;
    targets_.emplace_back();
    for (int rank : layout.ranks_of(layout.self())) {
      if (to == Block::kAll || to == rank) targets_.back().push_back(rank);
    }
  }
}

}  // namespace troupe::comm::internal

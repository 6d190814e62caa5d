#include "base/check.h"
#include "nn/kernels/cuda/libraries/call_memory.h"
#include "nn/kernels/cuda/libraries/library_ops.h"

namespace troupe::nn::cuda {
namespace {

AttentionSpec SpecOf(AttentionWay way, const AttentionRule& rule,
                     const AttentionOperands& o) {
  AttentionSpec spec;
  spec.way = way;
  spec.size = SizesOfAttention(o.q, o.k, o.v, o.y);
  spec.packing = o.v.defined()   ? AttentionPacking::kApart
                 : o.k.defined() ? AttentionPacking::kKeysAndValues
                                 : AttentionPacking::kAll;
  spec.causal = rule.causal;
  spec.dtype = o.q.dtype();
  return spec;
}

// Returns whether all operands have one dtype. If not, the call goes to kernels
// of our own, which return the error.
bool HaveOneDType(const AttentionOperands& o) {
  for (const Tensor* t : {&o.k, &o.v, &o.y, &o.dy, &o.dq, &o.dk, &o.dv}) {
    if (t->defined() && t->dtype() != o.q.dtype()) return false;
  }
  return true;
}

// Returns the plan, or null if kernels of our own compute the call. Operands
// that are not aligned are rare (only views of flat memory, because rows of
// heads are multiples of 16 bytes) and are not copied.
absl::StatusOr<AttentionPlan*> PlanOf(LibraryOps& gpu,
                                      const AttentionRule& rule,
                                      const AttentionSpec& spec,
                                      const AttentionOperands& operands) {
  if (!HaveOneDType(operands) ||
      !AttentionIsForLibrary(rule, spec.size, spec.dtype) ||
      !CheckOperands(spec, operands).ok()) {
    return nullptr;
  }
  const absl::StatusOr<AttentionPlan*> plan =
      gpu.attentions->Get(spec, gpu.stream);
  if (absl::IsUnimplemented(plan.status())) return nullptr;
  return plan;
}

absl::Status RunPlan(LibraryOps& gpu, AttentionPlan& plan,
                     const AttentionOperands& operands) {
  CallMemory memory(gpu);
  TROUPE_ASSIGN_OR_RETURN(void* const workspace,
                          memory.Bytes(plan.workspace_bytes()));
  return plan.Run(operands, workspace, gpu.stream);
}

absl::Status ForwardByPlan(LibraryOps& gpu, const AttentionRule& rule, In q,
                           In k, In v, Tensor& y, Tensor& lse) {
  AttentionOperands operands;
  operands.scale = rule.scale;
  operands.q = q, operands.k = k, operands.v = v;
  operands.y = y, operands.lse = lse;
  TROUPE_ASSIGN_OR_RETURN(
      AttentionPlan* const plan,
      PlanOf(gpu, rule, SpecOf(AttentionWay::kForward, rule, operands),
             operands));
  if (plan != nullptr) return RunPlan(gpu, *plan, operands);
  return gpu.own_attention->AttentionForward(rule, q, k, v, y, lse);
}

absl::Status BackwardByPlan(LibraryOps& gpu, const AttentionRule& rule, In q,
                            In k, In v, In y, In lse, In dy, Tensor& dq,
                            Tensor& dk, Tensor& dv) {
  AttentionOperands operands;
  operands.scale = rule.scale;
  operands.q = q, operands.k = k, operands.v = v;
  operands.y = y, operands.lse = lse, operands.dy = dy;
  operands.dq = dq, operands.dk = dk, operands.dv = dv;
  TROUPE_ASSIGN_OR_RETURN(
      AttentionPlan* const plan,
      PlanOf(gpu, rule, SpecOf(AttentionWay::kBackward, rule, operands),
             operands));
  if (plan != nullptr) return RunPlan(gpu, *plan, operands);
  return gpu.own_attention->AttentionBackward(rule, q, k, v, y, lse, dy, dq, dk,
                                              dv);
}

}  // namespace

void BindAttention(AttentionKernels& ops, LibraryOps* state) {
  ops.AttentionForward.Bind<ForwardByPlan>(state);
  ops.AttentionBackward.Bind<BackwardByPlan>(state);
}

}  // namespace troupe::nn::cuda

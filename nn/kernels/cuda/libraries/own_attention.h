// Kernels of our own as a plan of attention_plans.h, for the files that
// implement that interface.
//
//   if (choice == kOwnAttention) {
//     return std::make_unique<OwnAttentionPlan>(spec, own);
//   }
//
// Lifetime: the kernels must outlive the plan.

#ifndef NN_KERNELS_CUDA_LIBRARIES_OWN_ATTENTION_H_
#define NN_KERNELS_CUDA_LIBRARIES_OWN_ATTENTION_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "nn/kernels/attention.h"
#include "nn/kernels/cuda/libraries/attention_plans.h"

namespace troupe::nn::cuda {

inline constexpr const char* kOwnAttention = "own";

class OwnAttentionPlan final : public AttentionPlan {
 public:
  OwnAttentionPlan(const AttentionSpec& spec, const AttentionKernels& own)
      : AttentionPlan(spec, kOwnAttention, /*workspace_bytes=*/0), own_(own) {}

  absl::Status Run(const AttentionOperands& operands, void* /*workspace*/,
                   cudaStream_t /*the kernels' own*/) override {
    AttentionOperands o = operands;
    AttentionRule rule;
    rule.causal = spec().causal;
    rule.scale = o.scale;
    if (spec().way == AttentionWay::kForward) {
      return own_.AttentionForward(rule, o.q, o.k, o.v, o.y, o.lse);
    }
    return own_.AttentionBackward(rule, o.q, o.k, o.v, o.y, o.lse, o.dy, o.dq,
                                  o.dk, o.dv);
  }

 private:
  const AttentionKernels& own_;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_OWN_ATTENTION_H_

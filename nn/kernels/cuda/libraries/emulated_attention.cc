// Attention by the reference loops on the CPU, behind the interface of
// attention_plans.h. Tests that emulate CUDA link it instead of cuDNN. Kernels
// of our own are the first candidate and are chosen, unless a test says that
// the reference is faster (emulated_choice.h).

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cuda/emulated/enqueue.h"
#include "nn/kernels/cuda/libraries/attention_plans.h"
#include "nn/kernels/cuda/libraries/choice_text.h"
#include "nn/kernels/cuda/libraries/emulated_choice.h"
#include "nn/kernels/cuda/libraries/emulated_elements.h"
#include "nn/kernels/cuda/libraries/own_attention.h"
#include "nn/kernels/cuda/libraries/plan_cache.h"
#include "nn/kernels/reference/reference_kernels.h"

namespace troupe::nn::cuda {
namespace {

constexpr const char* kReference = "reference";

// The address, shape and dtype of a tensor, which an operation of a stream may
// keep without keeping the tensor's memory.
struct Place {
  explicit Place(const Tensor& t)
      : defined(t.defined()), shape(t.shape()), dtype(t.dtype()) {
    if (defined) data = t.device_data();
  }
  Tensor OnHost() const {
    if (!defined) return Tensor();
    return Tensor::Borrow(data, shape, dtype, Device{});
  }

  bool defined;
  void* data = nullptr;
  Shape shape;
  DType dtype;
};

struct Call {
  Call(const AttentionSpec& s, const AttentionOperands& o)
      : way(s.way),
        q(o.q),
        k(o.k),
        v(o.v),
        y(o.y),
        lse(o.lse),
        dy(o.dy),
        dq(o.dq),
        dk(o.dk),
        dv(o.dv) {
    rule.causal = s.causal;
    rule.scale = o.scale;
  }

  absl::Status Run(const AttentionKernels& reference) const {
    Tensor to_y = y.OnHost(), to_lse = lse.OnHost();
    if (way == AttentionWay::kForward) {
      return reference.AttentionForward(rule, q.OnHost(), k.OnHost(),
                                        v.OnHost(), to_y, to_lse);
    }
    Tensor to_dq = dq.OnHost(), to_dk = dk.OnHost(), to_dv = dv.OnHost();
    return reference.AttentionBackward(rule, q.OnHost(), k.OnHost(), v.OnHost(),
                                       to_y, to_lse, dy.OnHost(), to_dq, to_dk,
                                       to_dv);
  }

  AttentionRule rule;
  AttentionWay way;
  Place q, k, v, y, lse, dy, dq, dk, dv;
};

class ReferencePlan final : public AttentionPlan {
 public:
  explicit ReferencePlan(const AttentionSpec& spec)
      : AttentionPlan(spec, kReference, kEmulatedWorkspaceBytes),
        kernels_(CreateReferenceKernels()) {}

  absl::Status Run(const AttentionOperands& operands, void* workspace,
                   cudaStream_t stream) override {
    TROUPE_RETURN_IF_ERROR(CheckOperands(spec(), operands));
    return EnqueuedStatus(
        "Attention",
        emulated_cuda::EnqueueHostWork(
            stream, {"Attention", __FILE__, __LINE__},
            [kernels = kernels_, call = Call(spec(), operands), workspace] {
              PoisonWorkspace(workspace);
              const absl::Status status = call.Run(*kernels);
              TROUPE_CHECK(status.ok(), "the operands are checked");
            }));
  }

 private:
  const std::shared_ptr<Kernels> kernels_;
};

// The Library of PlanCache (plan_cache.h).
class Emulated {
 public:
  using Spec = AttentionSpec;
  using Plan = AttentionPlan;
  using Stream = cudaStream_t;
  using Plans = std::vector<std::unique_ptr<Plan>>;

  explicit Emulated(const AttentionKernels& own) : own_(own) {}

  absl::StatusOr<std::unique_ptr<Plan>> FromChoice(const Spec& spec,
                                                   const std::string& choice) {
    if (choice == kOwnAttention) {
      return std::make_unique<OwnAttentionPlan>(spec, own_);
    }
    if (choice == kReference) return std::make_unique<ReferencePlan>(spec);
    return absl::InvalidArgumentError(absl::StrCat(
        choice, " is no algorithm of the emulation; ", kKeepsChoices));
  }
  absl::StatusOr<Plans> Candidates(const Spec& spec) {
    Plans plans;
    plans.push_back(std::make_unique<OwnAttentionPlan>(spec, own_));
    plans.push_back(std::make_unique<ReferencePlan>(spec));
    return plans;
  }
  absl::StatusOr<bool> IsCapturing(Stream) { return false; }
  absl::StatusOr<std::vector<CandidateTimes>> Time(const Spec&, const Plans&,
                                                   Stream) {
    if (EmulatedFastest() == 0) return std::vector<CandidateTimes>{{1}, {2}};
    return std::vector<CandidateTimes>{{2}, {1}};
  }

 private:
  const AttentionKernels& own_;
};

}  // namespace

std::string AttentionLibraryName() { return "emulated attention"; }

absl::StatusOr<std::unique_ptr<AttentionPlans>> OpenAttentionPlans(
    const LibraryOptions& options, const AttentionKernels& own) {
  return std::make_unique<LibraryPlans<Emulated, AttentionPlans>>(options, own);
}

}  // namespace troupe::nn::cuda

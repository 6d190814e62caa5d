// Implements attention_plans.h in a build that did not find cuDNN's frontend
// (third_party/cudnn_frontend): it has no plans, so kernels of our own compute.

#include <memory>
#include <string>

#include "base/check.h"
#include "nn/kernels/cuda/libraries/attention_plans.h"

namespace troupe::nn::cuda {
namespace {

class NoPlans final : public AttentionPlans {
 public:
  absl::StatusOr<AttentionPlan*> Get(const AttentionSpec& spec,
                                     cudaStream_t) override {
    TROUPE_RETURN_IF_ERROR(spec.Check());
    return absl::UnimplementedError("built without cuDNN's frontend");
  }
};

}  // namespace

std::string AttentionLibraryName() { return "own attention"; }

absl::StatusOr<std::unique_ptr<AttentionPlans>> OpenAttentionPlans(
    const LibraryOptions&, const AttentionKernels&) {
  return std::make_unique<NoPlans>();
}

}  // namespace troupe::nn::cuda

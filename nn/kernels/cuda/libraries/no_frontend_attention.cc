// Implements attention_plans.h in a build that did not find cuDNN's frontend
// (third_party/cudnn_frontend): it has no plans, so kernels of our own compute.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/cuda/libraries/attention_plans.h"

namespace troupe::nn::cuda {
namespace {

class NoPlans final : public AttentionPlans {
 public:
  absl::StatusOr<AttentionPlan*> Get(const AttentionSpec& spec,
                                     cudaStream_t) override {
    TROUPE_RETURN_IF_ERROR(spec.Check());
    return absl::UnimplementedError(
        absl::StrCat(spec.Key(),
                     ": this build has no cuDNN frontend; build with it to use "
                     "cuDNN's attention"));
  }
};

}  // namespace

std::string AttentionLibraryName() { return "own attention"; }

absl::StatusOr<std::unique_ptr<AttentionPlans>> OpenAttentionPlans(
    const LibraryOptions&, const AttentionKernels&) {
  return std::make_unique<NoPlans>();
}

}  // namespace troupe::nn::cuda

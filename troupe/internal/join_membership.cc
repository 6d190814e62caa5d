#include "troupe/internal/join_membership.h"

#include "base/check.h"
#include "nn/ops/arithmetic.h"

namespace troupe {

void JoinMembership::Follow(const ActiveRanks& active, bool scales_gradients) {
  active_ = active;
  if (scales_gradients) gradient_factor_ = active.all_per_active;
}

absl::StatusOr<nn::BackwardRoot> JoinMembership::Scaled(
    nn::Context& context, const nn::BackwardRoot& root) const {
  nn::BackwardRoot scaled = root;
  scaled.scale *= gradient_factor_;
  if (root.seed.defined() && gradient_factor_ != 1) {
    scaled.seed = nn::ops::Scale(context, root.seed, gradient_factor_);
    TROUPE_RETURN_IF_ERROR(context.status());
  }
  return scaled;
}

}  // namespace troupe

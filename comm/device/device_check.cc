#include "comm/device/device_check.h"

#include "absl/strings/str_cat.h"
#include "comm/collective_kinds.h"
#include "comm/signature.h"

namespace troupe::comm::internal {
namespace {

// Returns the range as if it lay in host memory, for checks that look at shapes
// only.
nn::Tensor HostView(const nn::Tensor& range) {
  if (!range.defined() || range.is_meta()) return range;
  return nn::Tensor::Borrow(range.device_data(), range.shape(), range.dtype(),
                            nn::Device{});
}

}  // namespace

absl::Status CheckOnDevice(const Collective& collective, int rank, int size) {
  if (RuleOf(collective.kind).updates) {
    return absl::UnimplementedError(absl::StrCat(
        collective.ToString(),
        ": devices reduce, and update afterwards; start the two apart"));
  }
  Collective seen = collective;
  seen.range = HostView(collective.range);
  seen.input = HostView(collective.input);
  TROUPE_RETURN_IF_ERROR(CheckCollective(seen, rank, size));
  for (const nn::Tensor* side : {&collective.range, &collective.input}) {
    if (!side->defined() || side->numel() < kCountMax) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        collective.ToString(), ": a range must be smaller than 2^40"));
  }
  return absl::OkStatus();
}

}  // namespace troupe::comm::internal

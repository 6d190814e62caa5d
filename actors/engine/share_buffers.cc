#include "actors/engine/share_buffers.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "comm/communicator.h"

namespace troupe::actors {

absl::Status ShareBuffers(const EngineParts& parts, std::int64_t step) {
  LayerCollectives* const replicas = parts.device.Along("dp");
  parts.position.BeginStep(StepKind::kShareBuffers, step);
  for (const auto& chunk : parts.chunks) {
    for (const nn::Tensor& block : chunk->parameters().shared_buffers()) {
      TROUPE_CHECK(replicas != nullptr, "a plan that shares has the group");
      const absl::Status status =
          replicas->Run(comm::Broadcast(/*root=*/0, block));
      if (status.ok()) continue;
      return base::WithMessage(
          status, absl::StrCat("buffers of the first replica, after step ",
                               step, ": ", status.message()));
    }
  }
  parts.position.EndStep();
  return absl::OkStatus();
}

}  // namespace troupe::actors

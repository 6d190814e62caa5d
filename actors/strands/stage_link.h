// The way from one stage of a replica to another: activations forward,
// gradients back.
//
//   link.Send(/*stage=*/1, std::move(transfer));
//
// A compute strand knows the number of the stage that it sends to, and nothing
// of where that stage lives. In a process, a tensor is handed over as a counted
// handle, without a copy.
//
// Threads: Send from any; it never blocks.

#ifndef ACTORS_STRANDS_STAGE_LINK_H_
#define ACTORS_STRANDS_STAGE_LINK_H_

#include <memory>
#include <utility>
#include <vector>

#include "actors/protocol/messages.h"
#include "actors/setup/test_hooks.h"
#include "base/check.h"

namespace troupe::actors {

class StageLink {
 public:
  virtual ~StageLink() = default;
  // To the rank that has stage `stage` of the same replica. Transfers to one
  // stage arrive in the order in which they were sent.
  virtual void Send(int stage, Transfer transfer) = 0;
  // Whether a tensor for `stage` must lie in memory of the host.
  virtual bool NeedsHostMemory(int /*stage*/) const { return false; }
};

// For replicas whose stages all live in this process.
class LocalStageLink : public StageLink {
 public:
  // The compute strands of a replica's stages, in order; a strand that has
  // several is there for each.
  explicit LocalStageLink(std::vector<ComputeActor> stages)
      : stages_(std::move(stages)) {}

  void Send(int stage, Transfer transfer) override {
    TROUPE_CHECK(stage >= 0 && stage < static_cast<int>(stages_.size()),
                 "a transfer goes to a stage that there is");
    caf::anon_send(stages_[stage], std::move(transfer));
  }

 private:
  const std::vector<ComputeActor> stages_;
};

// That link, as `hooks` want it; null: as it is.
inline std::shared_ptr<StageLink> LinkLocalStages(
    std::vector<ComputeActor> stages, const TestHooks* hooks) {
  auto link = std::make_shared<LocalStageLink>(std::move(stages));
  if (hooks == nullptr || !hooks->wrap_link) return link;
  return hooks->wrap_link(std::move(link));
}

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_STAGE_LINK_H_

// Sends tensors from one stage of a replica to another: activations forward,
// gradients back.
//
//   link.Send(/*stage=*/1, std::move(transfer));
//
// A compute strand addresses a stage by its number; the link hides the stage's
// rank and process. Within a process, a tensor is passed as a reference-counted
// handle, without a copy.
//
// Threads: Send() may be called in any thread; it never blocks.

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
  // Sends to the rank that has stage `stage` of the same replica. Transfers to
  // one stage arrive in the order in which they were sent.
  virtual void Send(int stage, Transfer transfer) = 0;
  // Returns whether a tensor for `stage` must be in host memory.
  virtual bool NeedsHostMemory(int /*stage*/) const { return false; }
};

// The link of replicas whose stages are all in this process.
class LocalStageLink : public StageLink {
 public:
  // `stages`: the compute strand of each stage of the replica, in order. A
  // strand with several stages is listed for each.
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

// Makes a LocalStageLink, wrapped by hooks->wrap_link unless that is null.
inline std::shared_ptr<StageLink> LinkLocalStages(
    std::vector<ComputeActor> stages, const TestHooks* hooks) {
  auto link = std::make_shared<LocalStageLink>(std::move(stages));
  if (hooks == nullptr || !hooks->wrap_link) return link;
  return hooks->wrap_link(std::move(link));
}

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_STAGE_LINK_H_

// Calls the communication hook of a DDP (comm_hook.h) for the buckets that its
// engine gives to it (actors/engine/loop/bucket_hook.h), and turns exceptions
// into errors that name the bucket.
//
// Threads: the rank's own.

#ifndef TROUPE_INTERNAL_HOOK_RUNNER_H_
#define TROUPE_INTERNAL_HOOK_RUNNER_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/engine/loop/bucket_hook.h"
#include "troupe/comm_hook.h"
#include "troupe/group.h"

namespace troupe {

class ModelCore;

class HookRunner : public actors::BucketHook {
 public:
  // Both references outlive it. `group`: that which the hook gets.
  HookRunner(ModelCore& core, Group& group, CommHook hook)
      : core_(core), group_(group), hook_(std::move(hook)) {}

  absl::StatusOr<bool> Reduce(int action, int bucket) override;
  bool running() const override { return running_; }

 private:
  GradBucket Bucket(int bucket) const;
  // Calls a part of the hook; returns the error that it throws.
  absl::Status Call(const GradBucket& bucket,
                    const std::function<void()>& part);

  ModelCore& core_;
  Group& group_;
  const CommHook hook_;
  bool running_ = false;
};

}  // namespace troupe

#endif  // TROUPE_INTERNAL_HOOK_RUNNER_H_

// Interface of code that a hand-written training loop runs for each bucket of
// gradients in place of its all-reduce: a communication hook of PyTorch's
// DistributedDataParallel.
//
//   struct KeepOwn : BucketHook {             // gradients are not exchanged
//     absl::StatusOr<bool> Reduce(int, int) override { return true; }
//   };
//   KeepOwn hook;
//   TROUPE_RETURN_IF_ERROR(engine->SetHook(&hook));
//
// Reduce() is called in a synced backward, once for each bucket, when its
// gradients are complete; in the order of buckets, whatever order they are
// completed in, so that all replicas call it in one order. Gradients are as the
// backward has left them: the engine averages nothing. On a device with queues
// they are complete for later work of the compute queue.
//
// Threads and errors: those of the LoopEngine's Backward().

#ifndef ACTORS_ENGINE_LOOP_BUCKET_HOOK_H_
#define ACTORS_ENGINE_LOOP_BUCKET_HOOK_H_

#include "absl/status/statusor.h"

namespace troupe::actors {

class BucketHook {
 public:
  virtual ~BucketHook() = default;

  // Begins the reduction of a bucket. Returns true if its gradients are reduced
  // already. Otherwise its owner calls LoopEngine::CollectiveDone() for
  // `action` of the present step, after this call has returned.
  virtual absl::StatusOr<bool> Reduce(int action, int bucket) = 0;
  // Returns whether a call of the hook is under way, in which the engine
  // refuses to run backwards and steps.
  virtual bool running() const { return false; }
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_LOOP_BUCKET_HOOK_H_

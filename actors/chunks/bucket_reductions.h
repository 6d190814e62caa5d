// The reductions of a chunk's gradients over the replicas, one for each bucket:
// an all-reduce, in the dtype of the gradients or another, or what the job's
// communication hook has in its place (actors/spec/bucket_reduction.h).
//
//   TROUPE_ASSIGN_OR_RETURN(auto reductions,
//                           BucketReductions::Create(options, arenas));
//   TROUPE_RETURN_IF_ERROR(reductions->Begin(k));
//   comm->RunInline(*reductions->Exchange(k), timeout);
//   TROUPE_RETURN_IF_ERROR(reductions->End(k));
//
// Begin() comes before the collective of each round, End() after the last one.
// A reduction begins once its gradients are complete (for a tied bucket: summed
// over the stages). Afterwards Grads() of the bucket are the sum over the
// replicas, or the average; only OwnedGrads(), if replicas share the states of
// the optimizer (pipeline::PlanChoices::owners()).
//
// Errors: those of the reduction. Threads: one at a time.

#ifndef ACTORS_CHUNKS_BUCKET_REDUCTIONS_H_
#define ACTORS_CHUNKS_BUCKET_REDUCTIONS_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/bucket_arenas.h"
#include "actors/spec/bucket_reduction.h"
#include "comm/communicator.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/tensor.h"
#include "pipeline/plan.h"

namespace troupe::actors {

class BucketReductions {
 public:
  struct Options {
    const pipeline::Plan* plan = nullptr;
    int replica = 0;
    nn::Kernels* kernels = nullptr;
    // Allocator of tensors that collectives work on.
    nn::Allocator* memory = nullptr;
    // Reduction in place of an all-reduce; null: none.
    const CommunicationHook* hook = nullptr;
    // Whether reductions average over the replicas. False: they add up.
    bool averages = false;
  };

  // All pointers outlive the reductions, as does `arenas`.
  //   kInvalidArgument: the hook is not the plan's; names both.
  static absl::StatusOr<std::unique_ptr<BucketReductions>> Create(
      const Options& options, const BucketArenas& arenas);

  // Enqueues what comes before the collective of a round.
  absl::Status Begin(int bucket, int round = 0);
  // Returns whether Begin() comes right before Exchange(), rather than as soon
  // as the gradients are complete: those of another micro-batch may still be
  // reduced in the same memory.
  bool begins_late(int bucket) const {
    return arenas_.slices_grads() && !in_place(bucket);
  }
  // Returns the collective of a round; none if there is nothing to exchange.
  std::optional<comm::Collective> Exchange(int bucket, int round = 0) const;
  // Enqueues what comes after the last round.
  absl::Status End(int bucket);
  // Returns whether Begin() and End() do nothing.
  bool in_place(int bucket) const { return reductions_[bucket]->in_place(); }

  // Adds the memory that reductions work on, as far as it keeps its address.
  void AddRanges(std::vector<nn::Tensor>& ranges) const;

 private:
  explicit BucketReductions(const BucketArenas& arenas) : arenas_(arenas) {}

  const BucketArenas& arenas_;
  // Indexed by bucket of the plan.
  std::vector<std::unique_ptr<BucketReduction>> reductions_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_BUCKET_REDUCTIONS_H_

// Marks of the parameters that have a gradient in a step: a backward has used
// them, on this rank or, once the marks are summed, on any rank. Updates leave
// the others alone, as torch.optim does with a parameter whose .grad is None,
// and PyTorch's DDP with find_unused_parameters (its local_used_map).
//
//   TROUPE_ASSIGN_OR_RETURN(auto uses, UseMarks::Create(parameters, kernels));
//   // In each backward of a step (gradient_ledger.h):
//   uses->CompleteBucket(k);                   // before ZeroUnwritten(k)
//   // After the last one, with several ranks:
//   TROUPE_ASSIGN_OR_RETURN(const nn::Tensor marks, uses->Publish());
//   comm->RunInline(comm::AllReduce(comm::ReduceOp::kSum, marks), timeout);
//   uses->NoteSummed(base::Event());
//   TROUPE_RETURN_IF_ERROR(uses->TakeSum());
//   parameters.updates().LeaveOut(uses->Unused());
//
// Marks are exact: a parameter that a forward read, and on which the loss does
// not depend, is unused. One exception: if a bucket was complete once in a
// step, a parameter that is zeros since then counts as used by the next forward
// that reads it.
//
// The host waits for the sum only in TakeSum(), which a rank that has used all
// parameters need not call: no sum leaves out what one rank has used.
//
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_USE_MARKS_H_
#define ACTORS_CHUNKS_USE_MARKS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/chunk_parameters.h"
#include "base/event.h"
#include "nn/autograd/parameter.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class UseMarks {
 public:
  // `kernels` and the parameters outlive it.
  //   kResourceExhausted: there is no memory for the marks.
  static absl::StatusOr<std::unique_ptr<UseMarks>> Create(
      const ChunkParameters& parameters, nn::Kernels& kernels);

  // Discards all marks, with the gradients.
  void Clear();
  // Marks what has been written so far, and nothing more before Clear(): later
  // backwards use nothing of their own.
  void Close();
  bool closed() const { return closed_; }
  // Returns whether `read` has all trained parameters.
  bool AreAll(const std::vector<nn::Parameter*>& read) const;
  // Marks the parameters of a bucket whose gradients have been written. The
  // others are zeros from now on.
  void CompleteBucket(int bucket);
  // Notes that a backward adds nothing more to the gradient of a parameter that
  // its forward has read.
  void CompleteGradient(const nn::Parameter& parameter) {
    if (closed_) return;
    Use& use = uses_[parameter.index];
    if (use == Use::kZeros || use == Use::kElsewhere) use = Use::kUsed;
  }
  // Returns the trained parameters that no rank has used, as far as this one
  // knows, or that this rank has not used, in the order of buckets.
  std::vector<nn::Parameter*> Unused() const { return Without(false); }
  std::vector<nn::Parameter*> UnusedHere() const { return Without(true); }

  // Returns the marks as a tensor to be summed over the ranks in place: f32
  // [parameters], 1 for a used one. It may be read once ready() has completed.
  absl::StatusOr<nn::Tensor> Publish();
  const base::Event& ready() const { return ready_; }
  // Stores `done`, the event that completes with the sum.
  void NoteSummed(const base::Event& done) { summed_ = done; }
  // Waits for the sum, and marks the parameters that any rank has used.
  absl::Status TakeSum();

 private:
  // kElsewhere: used by another rank alone.
  enum class Use : char { kNone, kZeros, kElsewhere, kUsed };

  explicit UseMarks(nn::Kernels& kernels) : kernels_(kernels) {}

  // Returns those without kUsed and, unless `here`, without kElsewhere.
  std::vector<nn::Parameter*> Without(bool here) const;

  nn::Kernels& kernels_;
  std::vector<Use> uses_;  // indexed by Parameter::index
  std::vector<std::vector<nn::Parameter*>> buckets_;  // trained parameters
  bool closed_ = false;
  nn::Tensor marks_;
  base::Event ready_, summed_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_USE_MARKS_H_

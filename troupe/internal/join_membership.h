// How a model takes part in Join() (troupe/join.h): which calls of its loop are
// reported, which ranks still train, and what its gradients are multiplied by.
//
//   JoinMembership membership;                // not under Join()
//   membership.Enter(&observer);
//   membership.Follow(ranks, /*scales_gradients=*/true);   // some have ended
//   TROUPE_ASSIGN_OR_RETURN(root, membership.Scaled(context, root));
//   membership.Leave();                       // as before Enter()
//
// Models under one Join() have the same observer, active ranks and factor.
//
// Threads: the rank's own.

#ifndef TROUPE_INTERNAL_JOIN_MEMBERSHIP_H_
#define TROUPE_INTERNAL_JOIN_MEMBERSHIP_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/autograd/context.h"
#include "nn/tensor/tensor.h"

namespace troupe {

class ModelCore;  // troupe/internal/model_core.h

// The ranks of a DDP that train on batches of their own: all, unless some have
// ended under Join() (troupe/join.h).
struct ActiveRanks {
  int first = 0;  // the lowest of them, in the group along dp
  // Number of all ranks over that of the active ones.
  double all_per_active = 1;
  bool self = true;  // whether this rank is one
};

// Receives the calls of a loop before they are made.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // Called before a training forward of `x` that records. An error ends it.
  virtual absl::Status OnForward(ModelCore& model, const nn::Tensor& x) = 0;
  // Called after it, with its output.
  virtual void AfterForward(ModelCore& model, const nn::Tensor& y) = 0;
  // Called before a backward of these models, which begins at `root`. An
  // error ends it.
  virtual absl::Status OnBackward(absl::Span<ModelCore* const> models,
                                  const nn::Tensor& root) = 0;
};

class JoinMembership {
 public:
  // `observer` outlives its calls.
  void Enter(CallObserver* observer) { observer_ = observer; }
  // Sets the ranks that train from now on. `scales_gradients`: whether those of
  // later backwards are multiplied by all_per_active, so that the mean is over
  // these ranks.
  void Follow(const ActiveRanks& active, bool scales_gradients);
  void Leave() { *this = JoinMembership(); }

  // Null: the model is not under Join().
  CallObserver* observer() const { return observer_; }
  const ActiveRanks& active() const { return active_; }
  // Returns the root of a backward whose gradients are multiplied as Follow()
  // has set.
  absl::StatusOr<nn::BackwardRoot> Scaled(nn::Context& context,
                                          const nn::BackwardRoot& root) const;

 private:
  CallObserver* observer_ = nullptr;
  ActiveRanks active_;
  double gradient_factor_ = 1;
};

}  // namespace troupe

#endif  // TROUPE_INTERNAL_JOIN_MEMBERSHIP_H_

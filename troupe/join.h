// Training on uneven inputs: ranks of a DDP that have different numbers of
// batches, as under PyTorch's `with Join([ddp])` or `with ddp.join()`.
//
//   Sgd sgd(ddp, {/*lr=*/0.1});
//   {
//     auto joined = ddp.Join();                  // to the end of the block
//     for (const Var& x : inputs) {
//       sgd.ZeroGrad();
//       nn::MeanSquaredError(ddp(x), y).Backward();
//       sgd.Step();
//     }
//   }  // all ranks have the same parameters here, after the same steps
//
// Several models, such as a GAN's, are given to one guard, and all of them are
// trained in the block; a loss may depend on more than one of them:
//
//   auto joined = Join({net_g, net_d});
//
// A rank that has ended keeps answering at the end of the block, until all have
// ended: it *shadows* the calls of its peers. Before each training forward, and
// before each backward, all ranks exchange a notice of a few numbers, in which
// the peers give the shape of their input, the forwards that their loss depends
// on, and the calls since the last notice.
// The shadow then
//
//     takes part in the synchronisation of buffers, of a rank that trains
//     runs the module's forward on a batch of 0 rows, and its backward, so that
//       layers' collectives (synchronised norms, too) and buckets' reductions
//       find their partner; its gradients are zeros, and use no parameter
//     calls ZeroGrad() and Step() when its peers do: its optimizer's states and
//       number of steps remain theirs; it steps with their learning rate
//
// So a rank without any batch may take part, and no model is broadcast at the
// end. Buffers are, from the lowest of the ranks that were the last to train,
// unless each rank keeps its own. So are parameters if the model has no
// optimizer: a shadow cannot follow changes by hand.
//
// Differences from PyTorch: SyncBatchNorm works, where PyTorch throws. The
// optimizer of a rank that ends early goes on, where PyTorch gives the rank the
// last one's parameters and leaves its optimizer behind. Gradients that a rank
// has added up under NoSync() before it ended still count. With
// DDPOptions::exact_mean the ended ranks' counts are 0, so that gradients are
// those of the mean over the targets that there are.
//
// All ranks call forward, Backward() and Step() of the models in the same
// order, and each forward that records is followed by its backward, or its
// output is used as a constant (Detached()). Modules take inputs whose first
// axis is that of samples, also without a sample. Other collectives in the loop
// are the caller's: a rank that has ended runs none. On all ranks the loss of a
// backward depends on the same ones of the forwards since the last backward:
// the shadow's backward goes through the same synchronised norms.
//
// The end of the block waits for the peers, up to SpawnOptions::timeout for
// each notice, and may throw. If an exception leaves the block, it does
// nothing. Each notice is a collective of 11 numbers a rank and 4 a model; each
// forward and each backward has one.
//
// Errors: base::StatusError. kFailedPrecondition: a model without a DDP, or
// twice; a second Join() in one block; ranks that call in another order, with
// both and the models. kUnimplemented: a loss that depends on some, but not
// all, of more than 62 forwards of a model since the last backward.
// kOutOfRange: JoinOptions::throw_on_early_termination.
// Threads: the rank's own.
// Source: torch.distributed.algorithms.join of PyTorch 2.15.

#ifndef TROUPE_JOIN_H_
#define TROUPE_JOIN_H_

#include <memory>
#include <vector>

#include "troupe/model.h"

namespace troupe {

// The options of PyTorch's DistributedDataParallel.join().
struct JoinOptions {
  // Whether gradients are divided by the number of all ranks; otherwise by that
  // of the ranks that have not ended.
  bool divide_by_initial_world_size = true;
  // Whether the guard does anything.
  bool enable = true;
  // Whether all ranks throw as soon as one has ended before the others.
  bool throw_on_early_termination = false;
};

// Guard of a block in which ranks may have different numbers of batches.
class JoinGuard {
 public:
  explicit JoinGuard(const Trainable& ddp, const JoinOptions& options = {},
                     CallPlace place = CallPlace::Here());
  // Up to 32 models, in the same order on all ranks.
  explicit JoinGuard(const std::vector<Trainable>& ddps,
                     const JoinOptions& options = {},
                     CallPlace place = CallPlace::Here());
  ~JoinGuard() noexcept(false);
  JoinGuard(const JoinGuard&) = delete;
  JoinGuard& operator=(const JoinGuard&) = delete;

 private:
  class Notices;
  std::unique_ptr<Notices> notices_;  // null: the rank has no peers
  const int exceptions_;              // number in flight at the beginning
};

// Returns the guard of a block in which several models are trained.
[[nodiscard]] inline JoinGuard Join(const std::vector<Trainable>& ddps,
                                    const JoinOptions& options = {},
                                    CallPlace place = CallPlace::Here()) {
  return JoinGuard(ddps, options, place);
}

}  // namespace troupe

#endif  // TROUPE_JOIN_H_

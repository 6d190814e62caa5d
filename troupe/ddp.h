// DistributedDataParallel: replicas of a model whose gradients are averaged
// over the ranks while the backward runs.
//
//   auto model = rank.Make<Toy>();
//   DDP ddp(model);                             // rank 0's values on all ranks
//   Sgd sgd(ddp, {/*lr=*/0.001});
//   for (auto [x, y] : loader) {
//     sgd.ZeroGrad();
//     nn::CrossEntropy(ddp(x), y).Backward();
//     sgd.Step();
//   }
//   {
//     auto unsynced = ddp.NoSync();             // to the end of the block
//     nn::CrossEntropy(ddp(x), y).Backward();   // adds up, reduces nothing
//   }
//
// The ranks are those along the axis dp of the program's mesh: all, unless
// SpawnOptions::mesh says otherwise. Gradients lie in buckets, and each is
// reduced as soon as its gradients are complete. In the average, a parameter
// that a rank did not use counts as zeros there. The optimizer leaves alone
// what no rank has used since ZeroGrad() (find_unused_parameters, always on).
//
// Buckets are reduced in the order in which rank 0's backwards complete them:
// at first that is assumed to be the reverse of declaration, and every 20
// backwards all ranks follow what it was in the last 20. The buckets and the
// bits of the gradients stay the same (actors/engine/loop/launch_order.h).
// Communication hooks are called by number of the bucket.
//
// Errors: base::StatusError. The constructor compares the models of the ranks,
// and names the rank that has another one.
// Source: Li et al. 2020, doi:10.14778/3415478.3415530 (PyTorch Distributed).

#ifndef TROUPE_DDP_H_
#define TROUPE_DDP_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nn/tensor/dtype.h"
#include "troupe/comm_hook.h"
#include "troupe/join.h"
#include "troupe/model.h"

namespace troupe {

class Optimizer;  // troupe/optimizer.h

// The options of PyTorch 2.15's constructor; those that are missing are
// needless here (docs/coming_from_pytorch.md).
struct DDPOptions {
  double bucket_cap_mb = 25;
  // Limit of the first bucket, so that the first reduction begins soon.
  double first_bucket_mb = 1;
  // Limit of each bucket in order, in place of both; the last one repeats.
  std::vector<double> bucket_cap_mb_list;
  // Names of parameters that are reduced after all others, in a last bucket.
  std::vector<std::string> delay_all_reduce_named_params;
  // Whether a forward of a training begins with rank 0's buffers (running
  // statistics) on all ranks, if its backward reduces gradients. Otherwise
  // every rank keeps its own.
  bool broadcast_buffers = true;
  // Whether it begins with their averages over the ranks instead: integers,
  // which are counters, are still rank 0's. Overrides broadcast_buffers.
  bool average_buffers = false;
  // Whether ranks begin with rank 0's parameters and buffers.
  bool init_sync = true;
  // Whether gradients are those of the mean over all ranks' targets, where
  // PyTorch takes the mean of the ranks' means. They differ where ranks have
  // different numbers of targets.
  bool exact_mean = false;
  // Dtype in which ranks add up gradients, as PyTorch's bf16_compress_hook and
  // fp16_compress_hook: each rank's gradients and each sum of two are rounded
  // to it, so bf16 and f16 send half of the bytes of f32. Unset: their own.
  std::optional<nn::DType> reduction_dtype;
  // Whether each step uses the same parameters as the first one, on each rank.
  // Step() checks it, and later steps need not exchange what they have used.
  bool static_graph = false;
};

class DistributedDataParallel : public Trainable {
 public:
  explicit DistributedDataParallel(const Trainable& model,
                                   const DDPOptions& options = {});

  // Lets `hook` reduce each bucket in place of the all-reduce, from the next
  // backward on (troupe/comm_hook.h). All ranks register one, once, before the
  // first backward of a step; not with DDPOptions::reduction_dtype.
  template <typename Hook>
  void RegisterCommHook(Hook hook) {
    SetHook(MakeCommHook(std::move(hook)));
  }

  // Lets every backward update each bucket as soon as it is reduced
  // (optimizer in backward); `optimizer`, one of this DDP, has the same bits as
  // without. Step() then ends the step: it waits for updates under way. A step
  // has one backward, without NoSync(). A rank whose forward leaves out
  // parameters updates in Step(), when it knows whether its peers have used
  // them; what a forward reads counts as used. The program reads no gradients:
  // a rank without peers updates each row as soon as its gradient is there, and
  // keeps none. Refused for optimizers that need all gradients first (clipping,
  // skipped steps, layerwise rates).
  void StepInBackward(const Optimizer& optimizer);

  // Guard under which backwards reduce nothing: the next one without it reduces
  // the sum of all.
  class Unsynced {
   public:
    explicit Unsynced(ModelCore& core);
    ~Unsynced();
    Unsynced(const Unsynced&) = delete;
    Unsynced& operator=(const Unsynced&) = delete;

   private:
    ModelCore& core_;
    const bool synced_;
  };
  [[nodiscard]] Unsynced NoSync() const { return Unsynced(core()); }

  // Returns the buckets in the order in which backwards reduce them now, the
  // same on all ranks: {0, 1, 2} at first.
  std::vector<int> launch_order() const;

  // Returns the guard of a block in which ranks may have different numbers of
  // batches (troupe/join.h).
  [[nodiscard]] JoinGuard Join(const JoinOptions& options = {},
                               CallPlace place = CallPlace::Here()) const {
    return JoinGuard(*this, options, place);
  }

 private:
  void SetHook(CommHook hook);
};
using DDP = DistributedDataParallel;

}  // namespace troupe

#endif  // TROUPE_DDP_H_

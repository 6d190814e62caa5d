// The order in which a hand-written loop launches the reductions of its
// buckets. It follows the order in which backwards complete them, so that no
// complete bucket waits for a later one. PyTorch's DDP rebuilds its buckets for
// that: once, after the first backward, and never with find_unused_parameters.
// Here only the order changes, as often as it has to.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       auto order, LaunchOrder::Create({buckets, /*fixed=*/0}, kernels));
//   // In each synced backward:
//   TROUPE_ASSIGN_OR_RETURN(const bool changed, order->TakeAgreed());
//   if (changed) table.order = order->order();         // {2, 0, 1}
//   if (order->BeginBackward()) {                      // every 20th
//     TROUPE_ASSIGN_OR_RETURN(const nn::Tensor proposal, order->Publish());
//     comm->RunInline(comm::Broadcast(leader, proposal), timeout);
//     order->NoteSent(base::Event());
//   }
//   order->Observe();
//   for (const int bucket : complete) order->BucketComplete(bucket);
//   order->EndBackward();
//
// Agreement. Ranks pair the collectives of a group by their order, so all of
// them must change it before the same backward. Every kPeriod synced backwards
// one rank, the leader, broadcasts the order that it wants, before the first
// bucket of a backward; all ranks take it before the next one. It counts
// backwards that reduce, which the ranks' collectives keep in step, and no
// calls of a program's: whatever else ranks do differently, none hangs.
//
// The leader wants the order in which its last kPeriod backwards have all
// completed the buckets; if they differ, the present one. A bucket that a
// backward does not use is complete at once, which tells nothing about peers
// that use it: it keeps its place, and so do the last `fixed` buckets. A
// backward that is not observed, of a rank without data of its own, counts in
// the period alone.
//
// Bits. Buckets and their memory stay as they are. A bucket's reduction adds up
// its own elements over the ranks, by one fixed tree, and updates go by bucket:
// nothing depends on what is reduced before or after it.
//
// The order is not saved: a run that goes on from a file observes anew.
//
// Cost: one small broadcast, beside a backward, in kPeriod. A device is read
// back one backward later.
// Threads: one at a time.
// Source: Li et al. 2020, doi:10.14778/3415478.3415530 (PyTorch Distributed),
// sec. 6.2.1 (gradient order prediction).

#ifndef ACTORS_ENGINE_LOOP_LAUNCH_ORDER_H_
#define ACTORS_ENGINE_LOOP_LAUNCH_ORDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/event.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class LaunchOrder {
 public:
  // Number of synced backwards from one broadcast to the next, and of those
  // that must agree: what happens once in a while is no reason to change.
  static constexpr int kPeriod = 20;

  struct Options {
    int buckets = 0;
    int fixed = 0;  // number of the last buckets, which keep their places
  };

  // `kernels` outlives it.
  //   kResourceExhausted: there is no memory for the proposal.
  static absl::StatusOr<std::unique_ptr<LaunchOrder>> Create(
      const Options& options, nn::Kernels& kernels);

  // Returns the buckets in the present order; at first by number.
  const std::vector<int>& order() const { return order_; }

  // Takes the order that the last broadcast has brought, once it has ended.
  // Returns whether it is another one.
  //   kInternal: the leader has other buckets.
  absl::StatusOr<bool> TakeAgreed();
  // Begins a synced backward. Returns whether the leader broadcasts in it.
  bool BeginBackward();
  // Returns the order that this rank wants, as a tensor for the broadcast: i64
  // [buckets]. It may be read once ready() has completed.
  absl::StatusOr<nn::Tensor> Publish();
  const base::Event& ready() const { return ready_; }
  // Records that the broadcast ends with `done`.
  void NoteSent(const base::Event& done) { sent_ = done; }
  // Begins to observe the backward: the buckets that are complete already have
  // no gradients in it. With `counts` false it tells nothing.
  void Observe(bool counts = true) {
    counts_ = counts;
    complete_.clear();
  }
  void BucketComplete(int bucket) { complete_.push_back(bucket); }
  void EndBackward();

 private:
  LaunchOrder(const Options& options, nn::Kernels& kernels);

  // Returns the present order with the buckets of the last backward as it has
  // completed them, in the places that they have together.
  std::vector<int> Observed() const;

  const Options options_;
  nn::Kernels& kernels_;
  std::vector<int> order_;
  std::vector<int> complete_;  // by the present backward, in order
  bool counts_ = true;         // whether it is observed
  std::vector<int> observed_;  // result of Observed() in the last one
  int in_a_row_ = 0;           // number of backwards that have observed this
  std::int64_t backwards_ = 0;
  bool broadcasts_ = false;  // whether the last BeginBackward() returned true
  nn::Tensor proposal_;
  base::Event ready_, sent_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_LOOP_LAUNCH_ORDER_H_

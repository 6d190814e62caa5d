// The order in which the ranks of a hand-written loop launch the reductions of
// their buckets (launch_order.h), with the broadcast by which they agree on it.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       auto order, AgreedOrder::Create({/*ranks=*/2, buckets}, kernels));
//   // In each synced backward, before its first reduction:
//   TROUPE_ASSIGN_OR_RETURN(const bool changed, order->TakeAgreed());
//   if (changed) dispatcher.Reorder(order->order());
//   TROUPE_RETURN_IF_ERROR(order->BeginBackward(leader, step, reducer));
//   // In every backward:
//   order->Observe(/*counts=*/true);
//   for (const int bucket : complete) order->BucketComplete(bucket);
//   order->EndBackward(/*synced=*/true);
//
// All ranks have the same order in the same backward. A rank without peers, or
// with one bucket that may move, has nothing to agree on: its buckets go by
// number.
//
// Threads: one at a time.

#ifndef ACTORS_ENGINE_LOOP_AGREED_ORDER_H_
#define ACTORS_ENGINE_LOOP_AGREED_ORDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/engine/loop/launch_order.h"
#include "actors/engine/loop/side_collective.h"
#include "actors/engine/reducer.h"
#include "base/event.h"
#include "nn/kernels/kernels.h"

namespace troupe::actors {

class AgreedOrder {
 public:
  struct Options {
    int ranks = 1;  // number of those along dp
    int buckets = 0;
    int fixed = 0;  // number of the last buckets, which keep their places
  };

  // `kernels` outlives it.
  //   kResourceExhausted: there is no memory for the proposal.
  static absl::StatusOr<std::unique_ptr<AgreedOrder>> Create(
      const Options& options, nn::Kernels& kernels);

  // Returns the buckets in the present order; at first by number.
  std::vector<int> order() const;
  // Returns to the order by number, for good. No step may be under way.
  void GoByNumber() { order_.reset(); }

  // Takes the order that the last broadcast has brought, once it has ended.
  // Returns whether it is another one. Errors: those of LaunchOrder.
  absl::StatusOr<bool> TakeAgreed();
  // Begins a synced backward of step `step`: starts the broadcast of the next
  // order by rank `leader`, if that is due.
  absl::Status BeginBackward(int leader, std::int64_t step, Reducer& reducer);
  // Ends the broadcast; its result may be read once `done` has completed.
  void EndBroadcast(const base::Event& done, Reducer& reducer);
  const SideCollective& broadcast() const { return broadcast_; }

  // These do the same as the LaunchOrder methods of their names.
  void Observe(bool counts) {
    if (order_ != nullptr) order_->Observe(counts);
  }
  void BucketComplete(int bucket) {
    if (order_ != nullptr) order_->BucketComplete(bucket);
  }
  // `synced`: whether the backward reduces; another one tells nothing.
  void EndBackward(bool synced) {
    if (order_ != nullptr && synced) order_->EndBackward();
  }

 private:
  AgreedOrder(const Options& options, std::unique_ptr<LaunchOrder> order);

  const int buckets_;
  std::unique_ptr<LaunchOrder> order_;  // null: by number
  SideCollective broadcast_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_LOOP_AGREED_ORDER_H_

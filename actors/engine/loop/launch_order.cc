#include "actors/engine/loop/launch_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

absl::StatusOr<std::unique_ptr<LaunchOrder>> LaunchOrder::Create(
    const Options& options, nn::Kernels& kernels) {
  std::unique_ptr<LaunchOrder> order(new LaunchOrder(options, kernels));
  TROUPE_ASSIGN_OR_RETURN(order->proposal_,
                          nn::Tensor::Create({options.buckets}, nn::DType::kI64,
                                             kernels.allocator()));
  return order;
}

LaunchOrder::LaunchOrder(const Options& options, nn::Kernels& kernels)
    : options_(options), kernels_(kernels), order_(options.buckets) {
  std::iota(order_.begin(), order_.end(), 0);
}

absl::StatusOr<bool> LaunchOrder::TakeAgreed() {
  if (!std::exchange(broadcasts_, false)) return false;
  nn::Wait(kernels_, nn::Queue::kReadBack, sent_);
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor agreed,
      nn::CopyToHost(kernels_, nn::Queue::kReadBack, proposal_));
  TROUPE_RETURN_IF_ERROR(
      nn::Synchronize(kernels_, nn::Record(kernels_, nn::Queue::kReadBack)));
  const auto* const numbers = agreed.data<std::int64_t>();
  if (!std::is_permutation(order_.begin(), order_.end(), numbers)) {
    return absl::InternalError(
        "the order of reductions that a peer has sent lists other buckets than "
        "this rank has; all ranks must run the same program");
  }
  if (std::equal(order_.begin(), order_.end(), numbers)) return false;
  order_.assign(numbers, numbers + options_.buckets);
  return true;
}

bool LaunchOrder::BeginBackward() {
  broadcasts_ = backwards_ > 0 && backwards_ % kPeriod == 0;
  ++backwards_;
  return broadcasts_;
}

absl::StatusOr<nn::Tensor> LaunchOrder::Publish() {
  const std::vector<int>& wanted = in_a_row_ >= kPeriod ? observed_ : order_;
  // A copy to a device may still read the memory of the last call.
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor own, nn::Tensor::Create(proposal_.shape(), proposal_.dtype(),
                                         nn::HostAllocator(kernels_)));
  std::copy(wanted.begin(), wanted.end(), own.data<std::int64_t>());
  nn::Wait(kernels_, nn::Queue::kCompute, sent_);
  nn::CopyBytes(kernels_, nn::Queue::kCompute, own, proposal_);
  ready_ = nn::Record(kernels_, nn::Queue::kCompute);
  return proposal_;
}

void LaunchOrder::EndBackward() {
  if (!counts_) return;
  std::vector<int> now = Observed();
  in_a_row_ = now == observed_ ? in_a_row_ + 1 : 1;
  observed_ = std::move(now);
}

std::vector<int> LaunchOrder::Observed() const {
  std::vector<int> moved;
  std::vector<bool> moves(options_.buckets);
  for (const int bucket : complete_) {
    if (bucket >= options_.buckets - options_.fixed) continue;
    moved.push_back(bucket);
    moves[bucket] = true;
  }
  std::vector<int> observed = order_;
  auto next = moved.begin();
  for (int& bucket : observed) {
    if (moves[bucket]) bucket = *next++;
  }
  return observed;
}

}  // namespace troupe::actors

#include "actors/engine/loop/agreed_order.h"

#include <numeric>
#include <utility>

#include "base/check.h"
#include "comm/communicator.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

absl::StatusOr<std::unique_ptr<AgreedOrder>> AgreedOrder::Create(
    const Options& options, nn::Kernels& kernels) {
  std::unique_ptr<LaunchOrder> order;
  if (options.ranks > 1 && options.buckets - options.fixed > 1) {
    TROUPE_ASSIGN_OR_RETURN(
        order, LaunchOrder::Create({options.buckets, options.fixed}, kernels));
  }
  return std::unique_ptr<AgreedOrder>(
      new AgreedOrder(options, std::move(order)));
}

AgreedOrder::AgreedOrder(const Options& options,
                         std::unique_ptr<LaunchOrder> order)
    : buckets_(options.buckets),
      order_(std::move(order)),
      broadcast_(/*action=*/-2, "order of reductions") {}

std::vector<int> AgreedOrder::order() const {
  if (order_ != nullptr) return order_->order();
  std::vector<int> by_number(buckets_);
  std::iota(by_number.begin(), by_number.end(), 0);
  return by_number;
}

absl::StatusOr<bool> AgreedOrder::TakeAgreed() {
  return order_ != nullptr ? order_->TakeAgreed() : false;
}

absl::Status AgreedOrder::BeginBackward(int leader, std::int64_t step,
                                        Reducer& reducer) {
  if (order_ == nullptr || !order_->BeginBackward()) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor proposal, order_->Publish());
  return broadcast_.Start(comm::Broadcast(leader, std::move(proposal)),
                          order_->ready(), step, reducer);
}

void AgreedOrder::EndBroadcast(const base::Event& done, Reducer& reducer) {
  broadcast_.End(reducer);
  order_->NoteSent(done);
}

}  // namespace troupe::actors

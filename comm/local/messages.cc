#include "comm/local/messages.h"

#include <utility>
#include <vector>

namespace troupe::comm::internal {

Messages::Messages(int size)
    : size_(size),
      mailboxes_(new Mailbox[size]),
      pending_(new PendingMessages[size]) {}

void Messages::Hold(int to, Delivery delivery) {
  const std::uint64_t id = delivery.offer.id;
  absl::MutexLock lock(&mutex_);
  held_.emplace(id, Held{to, std::move(delivery)});
}

std::optional<Delivery> Messages::Release(std::uint64_t id) {
  absl::MutexLock lock(&mutex_);
  const auto found = held_.find(id);
  if (found == held_.end()) return std::nullopt;
  std::optional<Delivery> delivery = std::move(found->second.delivery);
  held_.erase(found);
  return delivery;
}

void Messages::Close(const absl::Status& status) {
  std::map<std::uint64_t, Held> held;
  {
    absl::MutexLock lock(&mutex_);
    held.swap(held_);
  }
  for (const auto& [id, one] : held) {
    one.delivery.offer.done.Complete(status);
    one.delivery.receive.done.Complete(status);
  }
  for (int r = 0; r < size_; ++r) mailboxes_[r].Close(status);
}

bool Messages::Waits(int rank, int peer) const {
  if (!mailboxes_[rank].FirstReceiveFrom(peer).empty()) return true;
  if (peer == kAnySource) return false;
  return !mailboxes_[peer].FirstOfferOf(rank, peer).empty();
}

}  // namespace troupe::comm::internal

#include "comm/pending_messages.h"

#include <algorithm>
#include <utility>

namespace troupe::comm::internal {
namespace {

constexpr std::size_t kLookAtMin = 64;

}  // namespace

Pending::Pending(const Receive& receive)
    : peer(receive.source),
      tag(receive.tag),
      dtype(receive.into.dtype()),
      count(receive.into.numel()),
      done(receive.done),
      since(std::chrono::steady_clock::now()) {}

Pending::Pending(const Offer& offer, int to)
    : sends(true),
      peer(to),
      tag(offer.tag),
      dtype(offer.dtype),
      count(offer.count),
      done(offer.done),
      since(std::chrono::steady_clock::now()) {}

std::string Pending::ToString() const {
  return sends ? SendText(peer, tag, dtype, count)
               : ReceiveText(peer, tag, dtype, count);
}

void PendingMessages::Add(Pending message) {
  absl::MutexLock lock(&mutex_);
  if (messages_.size() >= look_at_) {
    messages_.erase(
        std::remove_if(messages_.begin(), messages_.end(),
                       [](const Pending& one) { return one.done.ready(); }),
        messages_.end());
    look_at_ = std::max(2 * messages_.size(), kLookAtMin);
  }
  messages_.push_back(std::move(message));
}

std::string PendingMessages::First() const {
  absl::MutexLock lock(&mutex_);
  for (const Pending& message : messages_) {
    if (!message.done.ready()) return message.ToString();
  }
  return "";
}

std::vector<Waiting> PendingMessages::Waits(int rank, int size) const {
  std::vector<Waiting> waits;
  absl::MutexLock lock(&mutex_);
  for (const Pending& message : messages_) {
    if (message.done.ready()) continue;
    Waiting& wait = waits.emplace_back();
    wait.what = message.ToString();
    wait.since = message.since;
    for (int peer = 0; peer < size; ++peer) {
      const bool awaited = message.peer == kAnySource || message.peer == peer;
      if (awaited && peer != rank) wait.ranks.push_back(peer);
    }
  }
  return waits;
}

}  // namespace troupe::comm::internal

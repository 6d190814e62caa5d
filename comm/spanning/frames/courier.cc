#include "comm/spanning/frames/courier.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace troupe::comm::internal {
namespace {

// Limit on the frames of one payload that a link holds at a time.
constexpr int kFramesOutMax = 8;

}  // namespace

class DataSent final : public SendDone {
 public:
  DataSent(std::shared_ptr<Courier> courier, Courier::Key key)
      : courier_(std::move(courier)), key_(key) {}
  void OnSent() override {
    courier_->OnSent(key_);
    delete this;
  }

 private:
  const std::shared_ptr<Courier> courier_;
  const Courier::Key key_;
};

Courier::Courier(Switchboard* board, std::uint32_t group)
    : board_(board),
      group_(group),
      next_id_(board->processes()),
      seen_(board->processes()) {}

void Courier::Send(Item item, const Event& after, const Event& done) {
  const LaneKey key{item.frame.group, item.peer, item.lane};
  {
    absl::MutexLock lock(&mutex_);
    lanes_[key].push_back({std::move(item), after, done});
  }
  after.OnReady([self = shared_from_this(), key](const absl::Status& status) {
    if (status.ok()) self->DrainLane(key);
  });
}

void Courier::DrainLane(const LaneKey& key) {
  // One thread at a time sends from a lane, so that offers keep their order.
  // The flag is cleared under the same lock as the check that the lane is
  // empty, or waits.
  {
    absl::MutexLock lock(&mutex_);
    if (draining_[key]) return;
    draining_[key] = true;
  }
  while (SendFirst(key)) {
  }
}

bool Courier::SendFirst(const LaneKey& key) {
  Waiting first;
  Key id;
  bool eager;
  {
    absl::MutexLock lock(&mutex_);
    std::deque<Waiting>& lane = lanes_[key];
    if (lane.empty() || !lane.front().after.ready() ||
        !lane.front().after.status().ok()) {
      draining_.erase(key);
      if (lane.empty()) lanes_.erase(key);
      return false;
    }
    first = std::move(lane.front());
    lane.pop_front();
    const int peer = first.item.peer;
    id = {peer, next_id_[peer]++};
    const nn::Tensor& payload = first.item.payload;
    const std::size_t bytes = payload.defined() ? payload.bytes() : 0;
    first.item.frame.seq = id.second;
    first.item.frame.words[0] = bytes;
    eager = bytes <= board_->options().eager_bytes.value_or(kEagerBytesDefault);
    if (!eager) {
      Outbound& outbound = outbound_[id];
      outbound.group = first.item.frame.group;
      outbound.lane = first.item.lane;
      outbound.offer = first.item.frame;
      outbound.payload = payload;
      outbound.done = first.done;
    }
  }
  Frame& frame = first.item.frame;
  std::string text = std::move(first.item.header);
  frame.part = static_cast<std::uint16_t>(text.size());
  if (eager && frame.words[0] > 0) {
    text.append(static_cast<const char*>(first.item.payload.raw()),
                frame.words[0]);
  }
  frame.bytes = static_cast<std::uint32_t>(text.size());
  board_->Send(id.first, frame, text.data(), /*done=*/nullptr, /*copy=*/true);
  if (eager) first.done.Complete(absl::OkStatus());
  return true;
}

absl::StatusOr<Courier::Offer> Courier::Read(const Frame& frame,
                                             const char* payload) {
  Offer offer;
  offer.bytes = frame.words[0];
  const std::size_t data = frame.bytes - std::size_t{frame.part};
  if (frame.part > frame.bytes || (data > 0 && data != offer.bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("an offer of ", frame.words[0], " bytes with a header of ",
                     frame.part, " came with ", frame.bytes, " bytes"));
  }
  offer.header = absl::string_view(payload, frame.part);
  if (data > 0) offer.data = payload + frame.part;
  return offer;
}

void Courier::Accept(int peer, std::uint64_t id, Receipt receipt) {
  const std::uint32_t group = receipt.group;
  {
    absl::MutexLock lock(&mutex_);
    seen_[peer] = std::max(seen_[peer], id + 1);
    inbound_[{peer, id}].receipt = std::move(receipt);
  }
  if (board_->lost(peer)) {
    return End(
        [&](const Key& key, std::uint32_t) { return key.first == peer; },
        /*lost=*/true,
        absl::UnavailableError(absl::StrCat(board_->NameOf(peer), " is lost")));
  }
  Frame clear = MakeFrame(FrameType::kClear, group_, id);
  clear.tag = group;
  board_->Send(peer, clear, nullptr, nullptr);
}

void Courier::Pump(const Key& key) {
  const std::size_t piece = board_->options().piece_bytes;
  for (bool mine = false;; mine = true) {
    Frame frame = MakeFrame(FrameType::kData, group_, key.second);
    const char* data;
    {
      absl::MutexLock lock(&mutex_);
      const auto found = outbound_.find(key);
      if (found == outbound_.end()) return;
      Outbound& outbound = found->second;
      // A thread that pumps already checks again before it returns.
      if (outbound.pumping && !mine) return;
      const std::size_t left = outbound.payload.bytes() - outbound.next;
      outbound.pumping = outbound.cleared && outbound.over.ok() && left > 0 &&
                         outbound.out < kFramesOutMax;
      if (!outbound.pumping) return;
      frame.bytes = static_cast<std::uint32_t>(std::min(piece, left));
      frame.words[0] = outbound.next;
      data = static_cast<const char*>(outbound.payload.raw()) + outbound.next;
      outbound.next += frame.bytes;
      ++outbound.out;
    }
    board_->Send(key.first, frame, data, new DataSent(shared_from_this(), key));
  }
}

void Courier::OnSent(const Key& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = outbound_.find(key);
  if (found == outbound_.end()) return;
  --found->second.out;
  if (found->second.over.ok() &&
      found->second.next < found->second.payload.bytes()) {
    board_->Post([self = shared_from_this(), key] { self->Pump(key); });
  }
  RetireOutbound(key);
}

void Courier::RetireOutbound(const Key& key) {
  const auto found = outbound_.find(key);
  Outbound& outbound = found->second;
  const bool whole = outbound.next == outbound.payload.bytes();
  if (outbound.out > 0 || (!whole && outbound.over.ok())) return;
  const absl::Status status = whole ? absl::OkStatus() : outbound.over;
  board_->Post([done = outbound.done, status] { done.Complete(status); });
  outbound_.erase(found);
}

void Courier::RetireInbound(const Key& key) {
  const auto found = inbound_.find(key);
  Inbound& inbound = found->second;
  const bool whole = inbound.received == inbound.receipt.bytes;
  if (inbound.placed > inbound.received || (!whole && inbound.over.ok())) {
    return;
  }
  const absl::Status status = whole ? absl::OkStatus() : inbound.over;
  board_->Post([told = inbound.receipt.told, status] { told(status); });
  inbound_.erase(found);
}

template <typename Matches>
void Courier::End(const Matches& matches, bool lost, const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  for (auto next = outbound_.begin(); next != outbound_.end();) {
    const auto now = next++;
    if (!matches(now->first, now->second.group)) continue;
    now->second.over = why;
    RetireOutbound(now->first);
  }
  for (auto next = inbound_.begin(); next != inbound_.end();) {
    const auto now = next++;
    if (!matches(now->first, now->second.receipt.group)) continue;
    now->second.over = why;
    // A lost link writes no more bytes to this memory.
    if (lost) now->second.placed = now->second.received;
    RetireInbound(now->first);
  }
  for (auto next = lanes_.begin(); next != lanes_.end();) {
    const auto now = next++;
    const auto& [group, peer, lane] = now->first;
    if (!matches(Key{peer, 0}, group)) continue;
    for (const Waiting& waiting : now->second) {
      board_->Post([done = waiting.done, why] { done.Complete(why); });
    }
    lanes_.erase(now);
  }
}

void Courier::Cancel(std::uint32_t group, const absl::Status& why) {
  End([group](const Key&, std::uint32_t other) { return other == group; },
      /*lost=*/false, why);
}

void Courier::OnLost(int peer, const absl::Status& why) {
  End([peer](const Key& key, std::uint32_t) { return key.first == peer; },
      /*lost=*/true, why);
}

std::optional<Frame> Courier::FirstUncleared(std::uint32_t group, int peer,
                                             std::uint64_t lane) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, outbound] : outbound_) {
    if (key.first == peer && outbound.group == group && outbound.lane == lane &&
        !outbound.cleared) {
      return outbound.offer;
    }
  }
  const auto waiting = lanes_.find({group, peer, lane});
  if (waiting == lanes_.end() || waiting->second.empty()) return std::nullopt;
  return waiting->second.front().item.frame;
}

std::vector<int> Courier::Holders(std::uint32_t group) const {
  absl::MutexLock lock(&mutex_);
  std::vector<int> peers;
  for (const auto& [key, outbound] : outbound_) {
    if (outbound.group == group) peers.push_back(key.first);
  }
  for (const auto& [key, inbound] : inbound_) {
    if (inbound.receipt.group == group) peers.push_back(key.first);
  }
  return peers;
}

char* Courier::Place(int peer, const Frame& frame) {
  if (TypeOf(frame) != FrameType::kData) return nullptr;
  absl::MutexLock lock(&mutex_);
  const auto found = inbound_.find({peer, frame.seq});
  if (found == inbound_.end() || !found->second.over.ok()) return nullptr;
  Inbound& inbound = found->second;
  if (frame.words[0] != inbound.placed ||
      frame.bytes > inbound.receipt.bytes - inbound.placed) {
    return nullptr;
  }
  char* const to =
      static_cast<char*>(inbound.receipt.into.raw()) + inbound.placed;
  inbound.placed += frame.bytes;
  return to;
}

absl::Status Courier::Take(int peer, const Frame& frame, const char*) {
  const Key key{peer, frame.seq};
  bool pump = false;
  {
    absl::MutexLock lock(&mutex_);
    if (TypeOf(frame) == FrameType::kClear) {
      const auto found = outbound_.find(key);
      if (found == outbound_.end() && frame.seq < next_id_[peer]) {
        return absl::OkStatus();  // cancelled
      }
      if (found != outbound_.end() && !found->second.cleared) {
        found->second.cleared = pump = true;
      }
    } else if (TypeOf(frame) == FrameType::kData) {
      const auto found = inbound_.find(key);
      if (found == inbound_.end() && frame.seq < seen_[peer]) {
        return absl::OkStatus();
      }
      if (found != inbound_.end()) {
        Inbound& inbound = found->second;
        const std::size_t end = inbound.received + frame.bytes;
        if (frame.words[0] == inbound.received && end <= inbound.placed) {
          inbound.received = end;
          RetireInbound(key);
          return absl::OkStatus();
        }
        if (!inbound.over.ok()) return absl::OkStatus();
      }
    }
  }
  if (pump) {
    Pump(key);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(board_->NameOf(peer), " sent frame ", frame.type, " of ",
                   frame.bytes, " bytes at ", frame.words[0], " for payload ",
                   frame.seq, ", which does not fit"));
}

}  // namespace troupe::comm::internal

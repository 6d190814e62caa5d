#include "comm/sim/sim_link.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::comm {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
// Limit on a delay in microseconds; most are much shorter.
constexpr std::uint64_t kDelayMax = 1000;

}  // namespace

class SimNetwork::SimLink final : public Link {
 public:
  SimLink(SimNetwork* network, int process, int peer)
      : network_(*network), process_(process), peer_(peer) {}
  ~SimLink() override { network_.Remove(this); }

  int peer() const override { return peer_; }
  std::string ToString() const override {
    return absl::StrCat("simulated, from process ", process_, " to process ",
                        peer_);
  }
  void SetSink(FrameSink* sink) override { sink_ = sink; }
  std::size_t eager_bytes() const override {
    return network_.EagerBytes(process_, peer_);
  }
  void Send(const Frame& frame, const char* payload, SendDone* done,
            bool copy) override {
    network_.Send(process_, peer_, frame, payload, done, copy);
  }
  bool Progress() override { return network_.Step(); }
  bool Arm(pollfd* entry, absl::Duration*) override {
    entry->fd = -1;
    return false;
  }
  bool Lend(const SharedRange& range) override {
    return network_.Lend(process_, peer_, range);
  }
  void TakeBack(std::uint64_t id) override {
    network_.TakeBack(process_, peer_, id);
  }
  std::shared_ptr<char> Borrow(std::uint64_t id, std::uint64_t offset,
                               std::size_t bytes) const override {
    return network_.Borrow(process_, peer_, id, offset, bytes);
  }
  bool BorrowedHolds() const override {
    return network_.Holds(process_, peer_);
  }
  void Close(const absl::Status& why) override {
    absl::MutexLock lock(&network_.mutex_);
    network_.Break(process_, peer_, why);
  }

  int process() const { return process_; }
  FrameSink* sink() const { return sink_; }

 private:
  SimNetwork& network_;
  const int process_;
  const int peer_;
  FrameSink* sink_ = nullptr;
};

// The next event: exactly one of these.
struct SimNetwork::Choice {
  std::uint64_t due = kNever;
  Lane* lane = nullptr;
  int later = -1;
  int loss = -1;
};

SimNetwork::SimNetwork(int processes, std::uint64_t seed)
    : processes_(processes),
      lends_at_once_(seed % 2 == 0),
      seed_(seed),
      state_(seed),
      lanes_(processes * processes),
      paused_(processes),
      broken_(processes * processes),
      given_up_(processes * processes) {}

std::size_t SimNetwork::EagerBytes(int a, int b) const {
  constexpr std::size_t kChoices[] = {64, 1 << 10, kEagerBytesDefault};
  const int pair = std::min(a, b) * processes_ + std::max(a, b);
  return kChoices[(seed_ / 2 + static_cast<std::uint64_t>(pair)) % 3];
}

std::vector<std::unique_ptr<Link>> SimNetwork::LinksOf(int process) {
  std::vector<std::unique_ptr<Link>> links(processes_);
  absl::MutexLock lock(&mutex_);
  for (int peer = 0; peer < processes_; ++peer) {
    if (peer == process) continue;
    auto link = std::make_unique<SimLink>(this, process, peer);
    lane(process, peer).from = link.get();
    lane(peer, process).to = link.get();
    links[peer] = std::move(link);
  }
  return links;
}

std::uint64_t SimNetwork::now() const {
  absl::MutexLock lock(&mutex_);
  return now_;
}

std::uint64_t SimNetwork::delivered() const {
  absl::MutexLock lock(&mutex_);
  return delivered_;
}

// Returns random bits, by splitmix64.
std::uint64_t SimNetwork::Bits() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t SimNetwork::Delay() {
  const std::uint64_t bits = Bits();
  const std::uint64_t most = bits % 16 == 0 ? kDelayMax : 20;
  return 1 + (bits >> 8) % most;
}

void SimNetwork::Send(int from, int to, const Frame& frame, const char* payload,
                      SendDone* done, bool copy) {
  bool over = false;
  {
    absl::MutexLock lock(&mutex_);
    Lane& lane = this->lane(from, to);
    over = broken_[from * processes_ + to];
    if (!over) {
      Packet packet;
      packet.frame = frame;
      packet.copied = copy;
      if (copy && frame.bytes > 0) packet.copy.assign(payload, frame.bytes);
      packet.payload = payload;
      packet.done = done;
      if (lane.packets.empty()) lane.due = now_ + Delay();
      lane.packets.push_back(std::move(packet));
    }
  }
  if (over && done != nullptr) done->OnSent();
}

SimNetwork::Choice SimNetwork::Choose() {
  Choice choice;
  for (Lane& lane : lanes_) {
    if (lane.packets.empty() || lane.held || lane.to == nullptr ||
        lane.to->sink() == nullptr || paused_[lane.to->process()]) {
      continue;
    }
    if (lane.due < choice.due) choice = {lane.due, &lane, -1, -1};
  }
  for (int i = 0; i < static_cast<int>(later_.size()); ++i) {
    if (later_[i].due < choice.due && !paused_[later_[i].from]) {
      choice = {later_[i].due, nullptr, i, -1};
    }
  }
  for (int i = 0; i < static_cast<int>(losses_.size()); ++i) {
    const Loss& loss = losses_[i];
    const bool waits = loss.after_frames && !lane(loss.peer, loss.at).held &&
                       !lane(loss.peer, loss.at).packets.empty();
    if (loss.due < choice.due && !waits && !paused_[loss.at]) {
      choice = {loss.due, nullptr, -1, i};
    }
  }
  return choice;
}

bool SimNetwork::Step() {
  Choice choice;
  Later later{};
  Loss loss{};
  {
    absl::MutexLock lock(&mutex_);
    if (stepping_) return false;
    choice = Choose();
    if (choice.due == kNever) return false;
    now_ = std::max(now_, choice.due);
    if (choice.later >= 0) {
      later = later_[choice.later];
      later_.erase(later_.begin() + choice.later);
    } else if (choice.loss >= 0) {
      loss = losses_[choice.loss];
      losses_.erase(losses_.begin() + choice.loss);
    }
    stepping_ = true;
  }
  if (choice.lane != nullptr) {
    Deliver(choice.lane);
  } else if (choice.later >= 0) {
    later.done->OnSent();
  } else {
    Tell(loss);
  }
  absl::MutexLock lock(&mutex_);
  stepping_ = false;
  return true;
}

void SimNetwork::Deliver(Lane* lane) {
  SimLink* to;
  int from;
  Packet* packet;
  bool place;
  {
    absl::MutexLock lock(&mutex_);
    // Packets may be queued behind it meanwhile; a deque keeps this one in
    // place.
    packet = &lane->packets.front();
    to = lane->to;
    from = to->peer();
    place = !lane->placed && packet->frame.bytes > 0;
  }
  if (place) {
    char* const at = to->sink()->Place(from, packet->frame);
    absl::MutexLock lock(&mutex_);
    lane->placed = true;
    lane->place = at;
    lane->due = now_ + Delay();
    return;
  }
  const char* const data =
      packet->copied ? packet->copy.data() : packet->payload;
  if (lane->place != nullptr) {
    std::memcpy(lane->place, data, packet->frame.bytes);
    to->sink()->Take(from, packet->frame, nullptr);
  } else {
    // Aligned as a link's buffers are.
    std::vector<std::max_align_t> shown(
        packet->frame.bytes / sizeof(std::max_align_t) + 1);
    if (packet->frame.bytes > 0) {
      std::memcpy(shown.data(), data, packet->frame.bytes);
    }
    to->sink()->Take(from, packet->frame,
                     reinterpret_cast<const char*>(shown.data()));
  }
  absl::MutexLock lock(&mutex_);
  ++delivered_;
  if (packet->done != nullptr) {
    later_.push_back({now_ + Delay(), from, to->process(), packet->done});
  }
  lane->packets.pop_front();
  lane->placed = false;
  lane->place = nullptr;
  lane->due = now_ + Delay();
}

bool SimNetwork::IsMade(int a, int b) {
  return lane(a, b).from != nullptr && lane(b, a).from != nullptr;
}

void SimNetwork::Break(int a, int b, const absl::Status& why,
                       bool after_frames) {
  if (broken_[a * processes_ + b]) return;
  broken_[a * processes_ + b] = broken_[b * processes_ + a] = true;
  losses_.push_back({now_ + Delay(), a, b, why, after_frames});
  losses_.push_back({now_ + Delay(), b, a, why, after_frames});
}

// Reports a loss to one end: nothing moves in either direction after that.
void SimNetwork::Tell(const Loss& loss) {
  SimLink* link;
  std::vector<SendDone*> dones;
  {
    absl::MutexLock lock(&mutex_);
    link = lane(loss.at, loss.peer).from;
    Lane& in = lane(loss.peer, loss.at);
    Lane& out = lane(loss.at, loss.peer);
    for (Lane* lane : {&in, &out}) lane->held = true;
    given_up_[loss.at * processes_ + loss.peer] = true;
    for (Packet& packet : out.packets) {
      if (packet.done != nullptr) dones.push_back(packet.done);
    }
    // The receiver of OnSent() may free its payload.
    out.packets.clear();
  }
  if (link != nullptr && link->sink() != nullptr) {
    link->sink()->OnLost(loss.peer, loss.why);
  }
  for (SendDone* done : dones) done->OnSent();
}

void SimNetwork::SetHeld(int a, int b, bool held) {
  absl::MutexLock lock(&mutex_);
  if (broken_[a * processes_ + b]) return;
  for (Lane* lane : {&this->lane(a, b), &this->lane(b, a)}) {
    lane->held = held;
    lane->due = std::max(lane->due, now_ + 1);
  }
}

void SimNetwork::Pause(int process) {
  absl::MutexLock lock(&mutex_);
  paused_[process] = true;
}

void SimNetwork::Resume(int process) {
  absl::MutexLock lock(&mutex_);
  paused_[process] = false;
}

void SimNetwork::Lose(int process) {
  absl::MutexLock lock(&mutex_);
  for (int peer = 0; peer < processes_; ++peer) {
    if (peer == process || !IsMade(process, peer)) continue;
    Break(process, peer,
          absl::UnavailableError(absl::StrCat("process ", process, " died")));
  }
}

void SimNetwork::Reset(int a, int b) {
  absl::MutexLock lock(&mutex_);
  if (!IsMade(a, b)) return;
  Break(a, b, absl::UnavailableError("the connection was reset"));
}

void SimNetwork::Remove(SimLink* link) {
  const int at = link->process();
  const int peer = link->peer();
  std::vector<SendDone*> dones;
  {
    absl::MutexLock lock(&mutex_);
    const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !stepping_;
    };
    mutex_.Await(absl::Condition(&idle));
    Break(at, peer, absl::UnavailableError("the other side ended the link"),
          /*after_frames=*/true);
    Lane& out = lane(at, peer);
    for (Packet& packet : out.packets) {
      // Undelivered packets may still be delivered: from a copy.
      if (!packet.copied && packet.frame.bytes > 0) {
        packet.copy.assign(packet.payload, packet.frame.bytes);
        packet.copied = true;
      }
      if (packet.done != nullptr) {
        dones.push_back(std::exchange(packet.done, nullptr));
      }
    }
    for (auto later = later_.begin(); later != later_.end();) {
      if (later->from != at || later->to != peer) {
        ++later;
        continue;
      }
      dones.push_back(later->done);
      later = later_.erase(later);
    }
    out.from = nullptr;
    lane(peer, at).to = nullptr;
    given_up_[at * processes_ + peer] = true;
    losses_.erase(std::remove_if(losses_.begin(), losses_.end(),
                                 [&](const Loss& loss) {
                                   return loss.at == at && loss.peer == peer;
                                 }),
                  losses_.end());
  }
  for (SendDone* done : dones) done->OnSent();
}

bool SimNetwork::Lend(int from, int to, const SharedRange& range) {
  absl::MutexLock lock(&mutex_);
  const auto [loan, fresh] =
      loans_.emplace(std::tuple(from, to, range.id), Loan{range});
  if (fresh) loan->second.due = lends_at_once_ ? now_ : now_ + Delay();
  return !broken_[from * processes_ + to] && loan->second.due <= now_;
}

void SimNetwork::TakeBack(int from, int to, std::uint64_t id) {
  absl::MutexLock lock(&mutex_);
  loans_.erase({from, to, id});
}

std::shared_ptr<char> SimNetwork::Borrow(int by, int from, std::uint64_t id,
                                         std::uint64_t offset,
                                         std::size_t bytes) {
  absl::MutexLock lock(&mutex_);
  const auto loan = loans_.find({from, by, id});
  if (loan == loans_.end() || loan->second.due > now_) return nullptr;
  const SharedRange& range = loan->second.range;
  if (offset > range.bytes || bytes > range.bytes - offset) return nullptr;
  // Owned by the process that lends it.
  return {std::shared_ptr<void>(), range.data + offset};
}

bool SimNetwork::Holds(int by, int from) const {
  absl::MutexLock lock(&mutex_);
  return !given_up_[from * processes_ + by];
}

}  // namespace troupe::comm

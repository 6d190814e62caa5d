#include "comm/sim/sim_link.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::comm {

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
    absl::MutexLock lock(&network_.mutex_);
    return network_.lent_.Lend(process_, peer_, range) &&
           !network_.broken_[network_.Pair(process_, peer_)];
  }
  void TakeBack(std::uint64_t id) override {
    absl::MutexLock lock(&network_.mutex_);
    network_.lent_.TakeBack(process_, peer_, id);
  }
  std::shared_ptr<char> Borrow(std::uint64_t id, std::uint64_t offset,
                               std::size_t bytes) const override {
    absl::MutexLock lock(&network_.mutex_);
    return network_.lent_.Borrow(process_, peer_, id, offset, bytes);
  }
  bool BorrowedHolds() const override {
    absl::MutexLock lock(&network_.mutex_);
    return network_.lent_.Holds(process_, peer_);
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

// The next event: a channel's, or that of an element of later_ or losses_.
struct SimNetwork::Choice {
  std::uint64_t due = SimClock::kNever;
  int from = -1, to = -1;  // ends of the channel
  int later = -1;
  int loss = -1;
};

SimNetwork::SimNetwork(int processes, std::uint64_t seed)
    : processes_(processes),
      seed_(seed),
      clock_(seed),
      links_(processes * processes),
      channels_(processes * processes, SimChannel(&clock_)),
      paused_(processes),
      broken_(processes * processes),
      lent_(&clock_, processes, /*at_once=*/seed % 2 == 0) {}

std::size_t SimNetwork::EagerBytes(int a, int b) const {
  constexpr std::size_t kChoices[] = {64, 1 << 10, kEagerBytesDefault};
  const int pair = Pair(std::min(a, b), std::max(a, b));
  return kChoices[(seed_ / 2 + static_cast<std::uint64_t>(pair)) % 3];
}

std::vector<std::unique_ptr<Link>> SimNetwork::LinksOf(int process) {
  std::vector<std::unique_ptr<Link>> links(processes_);
  absl::MutexLock lock(&mutex_);
  for (int peer = 0; peer < processes_; ++peer) {
    if (peer == process) continue;
    auto link = std::make_unique<SimLink>(this, process, peer);
    links_[Pair(process, peer)] = link.get();
    links[peer] = std::move(link);
  }
  return links;
}

std::uint64_t SimNetwork::now() const {
  absl::MutexLock lock(&mutex_);
  return clock_.now();
}

std::uint64_t SimNetwork::delivered() const {
  absl::MutexLock lock(&mutex_);
  return delivered_;
}

void SimNetwork::Send(int from, int to, const Frame& frame, const char* payload,
                      SendDone* done, bool copy) {
  const int pair = Pair(from, to);
  bool over = false;
  {
    absl::MutexLock lock(&mutex_);
    over = broken_[pair];
    if (!over) {
      channels_[pair].Push(frame, payload, done, copy);
      busy_.insert(pair);
    }
  }
  if (over && done != nullptr) done->OnSent();
}

SimNetwork::Choice SimNetwork::Choose() {
  Choice choice;
  for (auto pair = busy_.begin(); pair != busy_.end();) {
    const SimChannel& channel = channels_[*pair];
    if (channel.empty()) {
      pair = busy_.erase(pair);
      continue;
    }
    const int from = *pair / processes_, to = *pair % processes_;
    ++pair;
    const SimLink* const receiver = links_[Pair(to, from)];
    if (receiver == nullptr || receiver->sink() == nullptr || paused_[to]) {
      continue;
    }
    if (channel.due() < choice.due) choice = {channel.due(), from, to, -1, -1};
  }
  for (int i = 0; i < static_cast<int>(later_.size()); ++i) {
    if (later_[i].due < choice.due && !paused_[later_[i].from]) {
      choice = {later_[i].due, -1, -1, i, -1};
    }
  }
  for (int i = 0; i < static_cast<int>(losses_.size()); ++i) {
    const Loss& loss = losses_[i];
    const SimChannel& incoming = channels_[Pair(loss.peer, loss.at)];
    const bool waits = loss.after_frames && incoming.due() != SimClock::kNever;
    if (loss.due < choice.due && !waits && !paused_[loss.at]) {
      choice = {loss.due, -1, -1, -1, i};
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
    if (choice.due == SimClock::kNever) return false;
    clock_.AdvanceTo(choice.due);
    if (choice.later >= 0) {
      later = later_[choice.later];
      later_.erase(later_.begin() + choice.later);
    } else if (choice.loss >= 0) {
      loss = losses_[choice.loss];
      losses_.erase(losses_.begin() + choice.loss);
    }
    stepping_ = true;
  }
  if (choice.from >= 0) {
    Deliver(choice.from, choice.to);
  } else if (choice.later >= 0) {
    later.done->OnSent();
  } else {
    Tell(loss);
  }
  absl::MutexLock lock(&mutex_);
  stepping_ = false;
  return true;
}

void SimNetwork::Deliver(int from, int to) {
  SimChannel* channel;
  SimPacket* packet;
  FrameSink* sink;
  {
    absl::MutexLock lock(&mutex_);
    channel = &channels_[Pair(from, to)];
    // It stays where it is; packets may be queued behind it meanwhile.
    packet = &channel->first();
    sink = links_[Pair(to, from)]->sink();
  }
  if (packet->AwaitsPlace()) {
    packet->Place(*sink, from);
    absl::MutexLock lock(&mutex_);
    channel->Delay();
    return;
  }
  packet->Take(*sink, from);
  absl::MutexLock lock(&mutex_);
  ++delivered_;
  if (packet->done != nullptr) {
    later_.push_back({clock_.AfterDelay(), from, to, packet->done});
  }
  channel->Pop();
}

bool SimNetwork::IsMade(int a, int b) {
  return links_[Pair(a, b)] != nullptr && links_[Pair(b, a)] != nullptr;
}

void SimNetwork::Break(int a, int b, const absl::Status& why,
                       bool after_frames) {
  if (broken_[Pair(a, b)]) return;
  broken_[Pair(a, b)] = broken_[Pair(b, a)] = true;
  losses_.push_back({clock_.AfterDelay(), a, b, why, after_frames});
  losses_.push_back({clock_.AfterDelay(), b, a, why, after_frames});
}

// Reports a loss to one end: nothing moves in either direction after that.
void SimNetwork::Tell(const Loss& loss) {
  SimLink* link;
  std::vector<SendDone*> dones;
  {
    absl::MutexLock lock(&mutex_);
    const int out = Pair(loss.at, loss.peer);
    link = links_[out];
    for (const int pair : {Pair(loss.peer, loss.at), out}) {
      channels_[pair].SetHeld(true);
    }
    lent_.GiveUp(loss.at, loss.peer);
    // The receiver of OnSent() may free its payload.
    dones = channels_[out].Drop();
  }
  if (link != nullptr && link->sink() != nullptr) {
    link->sink()->OnLost(loss.peer, loss.why);
  }
  for (SendDone* done : dones) done->OnSent();
}

void SimNetwork::SetHeld(int a, int b, bool held) {
  absl::MutexLock lock(&mutex_);
  if (broken_[Pair(a, b)]) return;
  for (const int pair : {Pair(a, b), Pair(b, a)}) channels_[pair].SetHeld(held);
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
    // Undelivered packets may still be delivered: from a copy.
    dones = channels_[Pair(at, peer)].Detach();
    for (auto later = later_.begin(); later != later_.end();) {
      if (later->from != at || later->to != peer) {
        ++later;
        continue;
      }
      dones.push_back(later->done);
      later = later_.erase(later);
    }
    links_[Pair(at, peer)] = nullptr;
    lent_.GiveUp(at, peer);
    losses_.erase(std::remove_if(losses_.begin(), losses_.end(),
                                 [&](const Loss& loss) {
                                   return loss.at == at && loss.peer == peer;
                                 }),
                  losses_.end());
  }
  for (SendDone* done : dones) done->OnSent();
}

}  // namespace troupe::comm

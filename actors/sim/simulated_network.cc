#include "actors/sim/simulated_network.h"

#include <cstddef>
#include <deque>
#include <optional>

#include "base/check.h"
#include "caf/actor_proxy.hpp"

namespace troupe::actors {
namespace {

// One message in kSlowMessages may take up to the longest time; the others take
// at most that time / kSoon.
constexpr std::uint32_t kSlowMessages = 8;
constexpr int kSoon = 16;

caf::error LinkLost() {
  return make_error(caf::exit_reason::remote_link_unreachable);
}

}  // namespace

// The proxy of an actor of another node.
class SimulatedNetwork::RemoteActor : public caf::actor_proxy {
 public:
  RemoteActor(caf::actor_config& config, SimulatedNetwork& network, int node,
              caf::strong_actor_ptr target)
      : actor_proxy(config),
        network_(network),
        node_(node),
        target_(std::move(target)) {}

  const caf::strong_actor_ptr& target() const { return target_; }

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) override {
    if (!ended_) network_.Send(node_, target_, std::move(what));
  }
  void kill_proxy(caf::execution_unit* host, caf::error reason) override {
    ended_ = true;
    cleanup(std::move(reason), host);
  }

 private:
  SimulatedNetwork& network_;
  const int node_;  // the node that has the proxy
  const caf::strong_actor_ptr target_;
  bool ended_ = false;
};

// The messages under way from one node to another.
class SimulatedNetwork::Channel : public SeededScheduler::Task {
 public:
  struct Item {
    caf::actor_clock::time_point due;
    // A message and its receiver. Null: the item is the end of an actor
    // (`ended`), or if that is not set, the end of the connection, which ends
    // all proxies.
    caf::mailbox_element_ptr message;
    caf::strong_actor_ptr to;
    std::optional<std::uint64_t> ended;
    caf::error reason;
  };

  Channel(SimulatedNetwork& network, int from, int to)
      : Task(network.system_.next_actor_id()),
        network_(network),
        from_(from),
        to_(to) {}

  void Push(Item item, absl::Duration delay) {
    if (closed_) return;
    const auto now = network_.scheduler_.now();
    item.due = now + absl::ToChronoNanoseconds(delay);
    if (!items_.empty() && item.due < items_.back().due) {
      item.due = items_.back().due;
    }
    if (item.due > now) {
      network_.CallIn(absl::FromChrono(item.due - now), Due::kChannel,
                      from_ * network_.options_.nodes + to_);
    }
    items_.push_back(std::move(item));
    Wake();
  }
  void Cut() { ++cuts_; }
  void Heal() {
    --cuts_;
    Wake();
  }
  // Ends the connection, after the messages under way, or if `drop`, without
  // them.
  void Close(bool drop) {
    if (drop) items_.clear();
    Item end;
    end.reason = LinkLost();
    Push(std::move(end), absl::ZeroDuration());
    closed_ = true;
  }
  void Drop() {
    items_.clear();
    closed_ = true;
  }
  bool closed() const { return closed_; }

  // Enqueues the task if a message can be delivered now.
  void Wake() {
    if (queued_ || !IsReady()) return;
    queued_ = true;
    network_.scheduler_.Enqueue(*this);
  }

  resume_result resume(caf::execution_unit*, std::size_t) override {
    queued_ = false;
    if (IsReady()) {
      Item item = std::move(items_.front());
      items_.pop_front();
      Deliver(std::move(item));
    }
    Wake();
    return awaiting_message;
  }

 private:
  bool IsReady() const {
    return cuts_ == 0 && !items_.empty() &&
           network_.nodes_[to_] != NodeState::kPaused &&
           items_.front().due <= network_.scheduler_.now();
  }

  void Deliver(Item item) {
    if (item.message != nullptr) {
      caf::message content = item.message->move_content_to_message();
      if (network_.options_.map_actors != nullptr) {
        network_.options_.map_actors(
            content, [&](auto& actor) { actor = network_.Proxy(to_, actor); });
      }
      item.to->enqueue(network_.Proxy(to_, item.message->sender),
                       item.message->mid, std::move(content), nullptr);
    } else if (item.ended) {
      network_.EndProxy(to_, *item.ended, item.reason);
    } else {
      network_.EndProxies(to_, from_);
    }
  }

  SimulatedNetwork& network_;
  const int from_, to_;
  std::deque<Item> items_;
  int cuts_ = 0;
  bool queued_ = false, closed_ = false;
};

SimulatedNetwork::BeingSpawned::BeingSpawned(SimulatedNetwork& network,
                                             int node)
    : network_(network), node_(node) {
  network_.node_of_.resize(network_.system_.latest_actor_id() + 1, -1);
  ++network_.spawning_;
}

SimulatedNetwork::BeingSpawned::~BeingSpawned() {
  network_.node_of_.resize(network_.system_.latest_actor_id() + 1, node_);
  --network_.spawning_;
}

SimulatedNetwork::SimulatedNetwork(caf::actor_system& system,
                                   SeededScheduler& scheduler,
                                   SimulatedNetworkOptions options)
    : system_(system),
      scheduler_(scheduler),
      options_(std::move(options)),
      nodes_(options_.nodes, NodeState::kUp) {
  for (int from = 0; from < options_.nodes; ++from) {
    for (int to = 0; to < options_.nodes; ++to) {
      channels_.push_back(std::make_unique<Channel>(*this, from, to));
    }
  }
  timer_ = system_.spawn<caf::hidden>(
      [](caf::event_based_actor*, SimulatedNetwork* network) {
        return network->TimerBehavior();
      },
      this);
  scheduler_.RunOnly([this](std::uint64_t actor) { return MayRun(actor); });
}

SimulatedNetwork::~SimulatedNetwork() { scheduler_.RunOnly(nullptr); }

caf::behavior SimulatedNetwork::TimerBehavior() {
  return {
      [this](int due, int index) { OnTimer(static_cast<Due>(due), index); }};
}

void SimulatedNetwork::CallIn(absl::Duration time, Due due, int index) {
  caf::delayed_anon_send(timer_, absl::ToChronoNanoseconds(time),
                         static_cast<int>(due), index);
}

void SimulatedNetwork::OnTimer(Due due, int index) {
  if (due == Due::kChannel) {
    channels_[index]->Wake();
  } else {
    Heal(options_.plan.faults[index]);
  }
}

int SimulatedNetwork::NodeOf(std::uint64_t actor) const {
  return actor < node_of_.size() ? node_of_[actor] : -1;
}

bool SimulatedNetwork::MayRun(std::uint64_t actor) const {
  const int node = NodeOf(actor);
  return node < 0 || thawed_ || nodes_[node] == NodeState::kUp;
}

SimulatedNetwork::Channel& SimulatedNetwork::ChannelOf(int from, int to) const {
  return *channels_[from * options_.nodes + to];
}

caf::strong_actor_ptr SimulatedNetwork::Proxy(
    int node, const caf::strong_actor_ptr& actor) {
  if (actor == nullptr) return nullptr;
  if (auto* remote = dynamic_cast<RemoteActor*>(actor->get())) {
    return Proxy(node, remote->target());
  }
  const std::uint64_t id = actor->id();
  const int home = NodeOf(id);
  if (home < 0 || home == node) return actor;
  caf::strong_actor_ptr& proxy = proxies_[{node, id}];
  if (proxy != nullptr) return proxy;
  caf::actor_config config;
  proxy = caf::make_actor<RemoteActor, caf::strong_actor_ptr>(
      system_.next_actor_id(), system_.node(), &system_, config, *this, node,
      actor);
  const caf::strong_actor_ptr made = proxy;
  if (ChannelOf(home, node).closed()) EndProxy(node, id, LinkLost());
  actor->get()->attach_functor([this, id, home, node](const caf::error& why) {
    OnEnded(id, home, node, why);
  });
  return made;
}

absl::Duration SimulatedNetwork::DrawDelay() {
  const absl::Duration longest = options_.plan.delay_max;
  if (longest <= absl::ZeroDuration()) return absl::ZeroDuration();
  nn::RandomStream& draws = scheduler_.draws();
  const bool slow = draws.Below(kSlowMessages) == 0;
  return (slow ? longest : longest / kSoon) * (draws.Bits32() * 0x1p-32);
}

void SimulatedNetwork::Send(int from, const caf::strong_actor_ptr& to,
                            caf::mailbox_element_ptr what) {
  if (thawed_) return;
  const int node = NodeOf(to->id());
  if (options_.on_message) options_.on_message(from, what->content());
  Channel::Item item;
  item.message = std::move(what);
  item.to = to;
  ChannelOf(from, node).Push(std::move(item), DrawDelay());
  Count(1);
  if (spawning_ > 0) return;
  // If a fault has struck the sender's own node, it must not reach its next
  // line.
  if (nodes_[from] != NodeState::kUp) {
    scheduler_.Stand();
  } else {
    scheduler_.Preempt();
  }
}

void SimulatedNetwork::Count(std::int64_t messages) {
  for (; messages > 0 && !thawed_; --messages) {
    ++sent_;
    for (std::size_t i = 0; i < options_.plan.faults.size(); ++i) {
      const Fault& fault = options_.plan.faults[i];
      if (fault.at != sent_) continue;
      Strike(fault);
      if (fault.kind == FaultKind::kCut || fault.kind == FaultKind::kPause) {
        CallIn(fault.lasts, Due::kHeal, static_cast<int>(i));
      }
    }
  }
}

void SimulatedNetwork::Strike(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kCut:
      ChannelOf(fault.node, fault.peer).Cut();
      ChannelOf(fault.peer, fault.node).Cut();
      break;
    case FaultKind::kReset:
      Close(fault.node, fault.peer, /*drop=*/true);
      break;
    case FaultKind::kPause:
      if (nodes_[fault.node] != NodeState::kUp) break;
      nodes_[fault.node] = NodeState::kPaused;
      break;
    case FaultKind::kDie:
      Die(fault);
      break;
    case FaultKind::kStale:
      break;
  }
  TellFault(fault, /*over=*/false);
}

void SimulatedNetwork::Heal(const Fault& fault) {
  if (fault.kind == FaultKind::kCut) {
    ChannelOf(fault.node, fault.peer).Heal();
    ChannelOf(fault.peer, fault.node).Heal();
  } else if (nodes_[fault.node] == NodeState::kPaused) {
    nodes_[fault.node] = NodeState::kUp;
    for (int peer = 0; peer < options_.nodes; ++peer) {
      ChannelOf(peer, fault.node).Wake();
    }
  }
  TellFault(fault, /*over=*/true);
}

void SimulatedNetwork::Die(const Fault& fault) {
  nodes_[fault.node] = NodeState::kGone;
  // The seed chooses whether messages sent before a kill still arrive.
  const bool drop = scheduler_.draws().Below(2) == 0;
  for (int peer = 0; peer < options_.nodes; ++peer) {
    if (peer == fault.node) continue;
    if (fault.heard) Close(fault.node, peer, drop);
    ChannelOf(peer, fault.node).Drop();
  }
}

void SimulatedNetwork::Close(int node, int peer, bool drop) {
  ChannelOf(node, peer).Close(drop);
  ChannelOf(peer, node).Close(drop);
}

void SimulatedNetwork::Leave(int node) {
  for (int peer = 0; peer < options_.nodes; ++peer) {
    if (peer != node) Close(node, peer, /*drop=*/false);
  }
}

void SimulatedNetwork::Thaw() {
  thawed_ = true;
  for (const auto& channel : channels_) channel->Drop();
  caf::anon_send_exit(timer_, caf::exit_reason::kill);
}

void SimulatedNetwork::OnEnded(std::uint64_t actor, int node, int peer,
                               const caf::error& reason) {
  if (thawed_) return;
  Channel::Item item;
  item.ended = actor;
  item.reason = reason;
  ChannelOf(node, peer).Push(std::move(item), DrawDelay());
}

void SimulatedNetwork::EndProxy(int node, std::uint64_t actor,
                                const caf::error& reason) {
  const auto found = proxies_.find({node, actor});
  if (found == proxies_.end()) return;
  static_cast<RemoteActor*>(found->second->get())->kill_proxy(nullptr, reason);
}

void SimulatedNetwork::EndProxies(int node, int peer) {
  for (const auto& [key, proxy] : proxies_) {
    if (key.first == node && NodeOf(key.second) == peer) {
      EndProxy(node, key.second, LinkLost());
    }
  }
}

}  // namespace troupe::actors

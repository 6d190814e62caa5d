#include "actors/sim/simulated_network.h"

#include <cstddef>

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
      channels_.push_back(std::make_unique<SimulatedChannel>(
          system_.next_actor_id(), scheduler_, EndsOf(from, to)));
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

int SimulatedNetwork::IndexOf(int from, int to) const {
  return from * options_.nodes + to;
}

SimulatedChannel& SimulatedNetwork::ChannelOf(int from, int to) const {
  return *channels_[IndexOf(from, to)];
}

SimulatedChannel::Ends SimulatedNetwork::EndsOf(int from, int to) {
  SimulatedChannel::Ends ends;
  ends.may_deliver = [this, to] { return nodes_[to] != NodeState::kPaused; };
  ends.deliver = [this, from, to](SimulatedChannel::Item item) {
    Deliver(from, to, std::move(item));
  };
  ends.wake_in = [this, index = IndexOf(from, to)](absl::Duration time) {
    CallIn(time, Due::kChannel, index);
  };
  return ends;
}

void SimulatedNetwork::Deliver(int from, int to, SimulatedChannel::Item item) {
  if (item.message != nullptr) {
    caf::message content = item.message->move_content_to_message();
    if (options_.map_actors != nullptr) {
      options_.map_actors(content,
                          [&](auto& actor) { actor = Proxy(to, actor); });
    }
    item.to->enqueue(Proxy(to, item.message->sender), item.message->mid,
                     std::move(content), nullptr);
  } else if (item.ended) {
    EndProxy(to, *item.ended, item.reason);
  } else {
    EndProxies(to, from);
  }
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
  SimulatedChannel::Item item;
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
  ChannelOf(node, peer).Close(LinkLost(), drop);
  ChannelOf(peer, node).Close(LinkLost(), drop);
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
  SimulatedChannel::Item item;
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

// A network between the nodes of a simulated cluster: actors of one system that
// belong to different nodes see each other through proxies, as in CAF's own
// network, so that actors of production run unchanged.
//
//   SimulatedNetwork network(system, scheduler, options);
//   caf::actor desk = network.Spawn(0, [&] { return SpawnDesk(system); });
//   caf::actor far = network.SeenFrom(1, desk);    // a proxy
//   caf::anon_send(far, 7);    // from node 1; arrives later, or never
//
// A message is under way for a time that the seed draws; those of one pair of
// nodes stay in their order, as TCP keeps it, those of different pairs do not.
// A plan of faults (fault_plan.h) cuts links and stops nodes. Actors in
// messages, and senders, become proxies on the way: `map_actors` finds them in
// a message. Other links between the nodes count their messages by Count(), and
// apply faults by `on_fault`.
//
// A node that is gone still has its actors, but they do not run, and no message
// of theirs arrives. Thaw() lets all actors run again, without a network, so
// that a simulation can end.
//
// Threads: one. Lifetime: its actors end before it does.

#ifndef ACTORS_SIM_SIMULATED_NETWORK_H_
#define ACTORS_SIM_SIMULATED_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "actors/caf/caf.h"
#include "actors/sim/fault_plan.h"
#include "actors/sim/seeded_scheduler.h"
#include "actors/sim/simulated_channel.h"

namespace troupe::actors {

// Calls `map` with every actor handle in a message, which may change it.
using ActorMapper = std::function<void(
    caf::message& message,
    const std::function<void(caf::strong_actor_ptr& actor)>& map)>;

struct SimulatedNetworkOptions {
  int nodes = 2;
  FaultPlan plan;
  ActorMapper map_actors;
  // Called when a fault begins, and when a lasting one is over. Has to carry
  // out a kStale. May be null.
  std::function<void(const Fault& fault, bool over)> on_fault;
  // Called with each message that is sent between nodes, before faults that
  // begin at it. May be null.
  std::function<void(int from, const caf::type_erased_tuple& message)>
      on_message;
};

class SimulatedNetwork {
 public:
  SimulatedNetwork(caf::actor_system& system, SeededScheduler& scheduler,
                   SimulatedNetworkOptions options);
  ~SimulatedNetwork();

  // Calls `spawn`. The actors that it spawns belong to `node`.
  template <typename Function>
  auto Spawn(int node, Function spawn) {
    const BeingSpawned being_spawned(*this, node);
    return spawn();
  }
  // Returns the handle that `node` has of an actor: itself, or a proxy.
  template <typename Handle>
  Handle SeenFrom(int node, const Handle& actor) {
    return caf::actor_cast<Handle>(
        Proxy(node, caf::actor_cast<caf::strong_actor_ptr>(actor)));
  }

  // Closes the connections of a node, as at the end of its process.
  void Leave(int node);
  void Thaw();

  // Returns whether the node has died by a kDie.
  bool is_gone(int node) const { return nodes_[node] == NodeState::kGone; }
  // Counts messages that went between nodes by other links. Not to be called
  // within a handler of an actor.
  void Count(std::int64_t messages);
  // Returns the number of messages sent between nodes.
  std::int64_t sent() const { return sent_; }
  bool is_up(int node) const { return nodes_[node] == NodeState::kUp; }
  // Returns whether a fault of the plan has begun.
  bool HasStruck(const Fault& fault) const { return sent_ >= fault.at; }

 private:
  enum class NodeState { kUp, kPaused, kGone };
  // Kinds of timers.
  enum class Due { kChannel, kHeal };
  class RemoteActor;
  class BeingSpawned {
   public:
    BeingSpawned(SimulatedNetwork& network, int node);
    ~BeingSpawned();

   private:
    SimulatedNetwork& network_;
    const int node_;
  };

  // Returns the node of an actor; -1: it belongs to none.
  int NodeOf(std::uint64_t actor) const;
  bool MayRun(std::uint64_t actor) const;
  // Returns the index of a channel in `channels_`.
  int IndexOf(int from, int to) const;
  SimulatedChannel& ChannelOf(int from, int to) const;
  SimulatedChannel::Ends EndsOf(int from, int to);
  void Deliver(int from, int to, SimulatedChannel::Item item);
  caf::behavior TimerBehavior();
  void OnTimer(Due due, int index);
  void CallIn(absl::Duration time, Due due, int index);
  caf::strong_actor_ptr Proxy(int node, const caf::strong_actor_ptr& actor);
  void Send(int from, const caf::strong_actor_ptr& to,
            caf::mailbox_element_ptr what);
  absl::Duration DrawDelay();
  void Strike(const Fault& fault);
  void Heal(const Fault& fault);
  void TellFault(const Fault& fault, bool over) const {
    if (options_.on_fault) options_.on_fault(fault, over);
  }
  void Die(const Fault& fault);
  // Closes the link between two nodes. `drop`: messages under way are lost.
  void Close(int node, int peer, bool drop);
  // Ends the proxy at `peer` of an actor of `node` that has ended.
  void OnEnded(std::uint64_t actor, int node, int peer,
               const caf::error& reason);
  void EndProxy(int node, std::uint64_t actor, const caf::error& reason);
  // Ends all proxies at `node` of actors of `peer`.
  void EndProxies(int node, int peer);

  caf::actor_system& system_;
  SeededScheduler& scheduler_;
  const SimulatedNetworkOptions options_;
  std::vector<NodeState> nodes_;
  // Channels, by IndexOf().
  std::vector<std::unique_ptr<SimulatedChannel>> channels_;
  std::vector<int> node_of_;  // node of each actor
  // Proxies, by the node that has them and the actor's number.
  std::map<std::pair<int, std::uint64_t>, caf::strong_actor_ptr> proxies_;
  caf::actor timer_;
  std::int64_t sent_ = 0;
  int spawning_ = 0;
  bool thawed_ = false;
};

}  // namespace troupe::actors

#endif  // ACTORS_SIM_SIMULATED_NETWORK_H_

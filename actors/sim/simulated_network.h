// A network between the nodes of a simulated cluster: actors of one system that
// belong to different nodes see each other through proxies, as CAF's own
// network has them, so that actors are those of production.
//
//   SimulatedNetwork network(system, scheduler, options);
//   caf::actor desk = network.Spawn(0, [&] { return SpawnDesk(system); });
//   caf::actor far = network.SeenFrom(1, desk);    // a proxy
//   caf::anon_send(far, 7);    // from node 1; there later, or never
//
// A message is under way for a time that the seed draws; those of one pair of
// nodes stay in their order, as TCP keeps it, those of different pairs do not.
// What becomes of nodes and links besides is what a plan of faults says
// (fault_plan.h). Actors in messages and senders become proxies on the way:
// `map_actors` knows where they are. What else travels between the nodes, by
// links of its own, counts by Count(), and hears of faults by `on_fault`.
//
// A node that is gone has its actors still, but nothing of it runs or arrives;
// Thaw() lets all of them run once more, with nobody to hear them, so that a
// simulation can end.
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

namespace troupe::actors {

// Calls a function with every actor that a message holds; may change them.
using ActorMapper = std::function<void(
    caf::message& message,
    const std::function<void(caf::strong_actor_ptr& actor)>& map)>;

struct SimulatedNetworkOptions {
  int nodes = 2;
  FaultPlan plan;
  ActorMapper map_actors;
  // Called when a fault strikes, and when one that lasts is over; carries out a
  // kStale. May be null.
  std::function<void(const Fault& fault, bool over)> on_fault;
  // Called with each message that is sent between nodes, before a fault may
  // strike at it. May be null.
  std::function<void(int from, const caf::type_erased_tuple& message)>
      on_message;
};

class SimulatedNetwork {
 public:
  SimulatedNetwork(caf::actor_system& system, SeededScheduler& scheduler,
                   SimulatedNetworkOptions options);
  ~SimulatedNetwork();

  // Calls `spawn`; the actors that it spawns belong to `node`.
  template <typename Function>
  auto Spawn(int node, Function spawn) {
    const BeingSpawned being_spawned(*this, node);
    return spawn();
  }
  // An actor as `node` has it: itself, or a proxy.
  template <typename Handle>
  Handle SeenFrom(int node, const Handle& actor) {
    return caf::actor_cast<Handle>(
        Proxy(node, caf::actor_cast<caf::strong_actor_ptr>(actor)));
  }

  // The process of a node ends: its connections close.
  void Leave(int node);
  void Thaw();

  // By a kDie.
  bool is_gone(int node) const { return nodes_[node] == NodeState::kGone; }
  // So many messages went between nodes by other ways. Not within a handler of
  // an actor.
  void Count(std::int64_t messages);
  // Messages that were sent between nodes.
  std::int64_t sent() const { return sent_; }
  bool is_up(int node) const { return nodes_[node] == NodeState::kUp; }
  // Whether a fault of the plan has struck.
  bool HasStruck(const Fault& fault) const { return sent_ >= fault.at; }

 private:
  enum class NodeState { kUp, kPaused, kGone };
  // What the timer tells.
  enum class Due { kChannel, kHeal };
  class RemoteActor;
  class Channel;
  class BeingSpawned {
   public:
    BeingSpawned(SimulatedNetwork& network, int node);
    ~BeingSpawned();

   private:
    SimulatedNetwork& network_;
    const int node_;
  };

  // -1: of none.
  int NodeOf(std::uint64_t actor) const;
  bool MayRun(std::uint64_t actor) const;
  Channel& ChannelOf(int from, int to) const;
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
  // The link between two nodes is no more; what is under way is lost or not.
  void Close(int node, int peer, bool drop);
  // An actor of `node` has ended: tells the proxy at `peer`.
  void OnEnded(std::uint64_t actor, int node, int peer,
               const caf::error& reason);
  void EndProxy(int node, std::uint64_t actor, const caf::error& reason);
  // All proxies at `node` of actors of `peer`.
  void EndProxies(int node, int peer);

  caf::actor_system& system_;
  SeededScheduler& scheduler_;
  const SimulatedNetworkOptions options_;
  std::vector<NodeState> nodes_;
  std::vector<std::unique_ptr<Channel>> channels_;  // [from * nodes + to]
  std::vector<int> node_of_;                        // by actor
  // By node and the actor's number.
  std::map<std::pair<int, std::uint64_t>, caf::strong_actor_ptr> proxies_;
  caf::actor timer_;
  std::int64_t sent_ = 0;
  int spawning_ = 0;
  bool thawed_ = false;
};

}  // namespace troupe::actors

#endif  // ACTORS_SIM_SIMULATED_NETWORK_H_

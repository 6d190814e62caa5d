// Declares names that the usage comments in actors/cluster/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_ACTORS_CLUSTER_H_
#define TESTS_USAGE_WORDS_ACTORS_CLUSTER_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/caf/strand_scheduler.h"
#include "actors/cluster/agent.h"
#include "actors/cluster/cluster_messages.h"
#include "actors/cluster/control_client.h"
#include "actors/cluster/control_plane.h"
#include "actors/cluster/control_session.h"
#include "actors/cluster/coordinator.h"
#include "actors/cluster/join_round.h"
#include "actors/cluster/liveness.h"
#include "actors/cluster/membership.h"
#include "actors/cluster/own_pause.h"
#include "actors/job.h"
#include "actors/setup/roster.h"
#include "actors/spec/cluster_options.h"
#include "base/check.h"
#include "comm/fabric.h"
#include "comm/link.h"

namespace troupe::actors::usage {

extern JobSpec spec;
extern JobObserver* observer;
extern const ClusterOptions options;
extern caf::actor_system& system;
extern const CoordinatorActor coordinator;
extern const absl::Time deadline;
extern const absl::Duration timeout;

namespace control_session_h {
extern Welcome offer;
extern const std::string agreement;
}  // namespace control_session_h

namespace join_round_h {
extern const Join join_of_0, join_of_1;
void WelcomeAll(const std::vector<Member>& members);
}  // namespace join_round_h

namespace liveness_h {
extern const Liveness::TimePoint now;
void Blame(int peer, Liveness::Duration duration);
void SetTimer(Liveness::Duration delay);
}  // namespace liveness_h

namespace key_store_h {
extern const caf::strong_actor_ptr sender;
void Answer(const caf::strong_actor_ptr& to);
void Use(const std::string& value);
}  // namespace key_store_h

namespace membership_h {
extern const Welcome offer;
extern const Join join;
extern const caf::strong_actor_ptr sender;
void Watch(const caf::strong_actor_ptr& agent);
void Send(const caf::strong_actor_ptr& to, const Welcome& welcome);
void Begin();
void End();
}  // namespace membership_h

namespace own_pause_h {
extern const OwnPause::TimePoint now;
extern Liveness liveness;
void BlameSelf(OwnPause::Duration duration);
}  // namespace own_pause_h

namespace control_client_h {
extern const actors::Join join;
extern ControlClient client;
extern const std::int32_t generation;
}  // namespace control_client_h

namespace peer_links_h {
extern const Welcome welcome;
extern comm::Store& client;
}  // namespace peer_links_h

namespace rendezvous_h {
extern const std::string agreement;
}

namespace trace_share_h {
extern const std::vector<StampedEvent> events;
extern const std::string part;
void Send(std::string part);
}  // namespace trace_share_h

}  // namespace troupe::actors::usage

#endif  // TESTS_USAGE_WORDS_ACTORS_CLUSTER_H_

// The protocol between the processes of a job, before and beside that of its
// ranks (actors/protocol/messages.h): joining, the store, signs of life, the
// end. All of it goes between process 0, whose coordinator answers, and one
// other; nothing here is in-process, and no float is in it.

#ifndef ACTORS_CLUSTER_CLUSTER_MESSAGES_H_
#define ACTORS_CLUSTER_CLUSTER_MESSAGES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/protocol/messages.h"
#include "actors/setup/roster.h"

namespace troupe::actors {

struct Crew;  // actors/supervision/supervisor.h

// A process wants to take part. What it says of the job must be alike in all
// processes (join_round.h).
struct Join {
  Member member;
  std::uint64_t nonce = 0;      // comes back: this is an answer to me
  caf::strong_actor_ptr agent;  // null in process 0
  std::int32_t processes = 0;
  std::string version;    // of the binary
  std::string agreement;  // ClusterOptions
};

// All have joined: what process 0 has decided for all.
struct Welcome {
  std::int32_t generation = 0;
  std::uint64_t nonce = 0;
  std::vector<Member> members;  // by process
  std::string token;            // what data connections prove that they know
  std::string plan;             // pipeline/plan_json.h
  std::string resume_path;      // the checkpoint to go on from; empty: fresh
};

// The answer to any request that cannot be fulfilled, and to all later ones.
struct Refused {
  std::int32_t code = 0;  // absl::StatusCode
  std::string message;
};

// Store: whoever asks before a key is set waits.
struct SetKey {
  std::string key, value;
};
struct GetKey {
  std::string key;
};
struct KeyValue {
  std::string key, value;
};

// To whom the actors of a process report; answered once it is there.
struct GetSupervisor {
  std::int32_t generation = 0;
};
struct SupervisorIs {
  caf::strong_actor_ptr supervisor;
};

// The actors of a process are there, by ascending rank.
struct CrewReady {
  std::int32_t generation = 0;
  std::int32_t process = 0;
  std::vector<caf::strong_actor_ptr> ranks;
  caf::strong_actor_ptr checkpointer;
};

// Both ways, several times in a liveness time-out. Times in nanoseconds since
// 1970, by the clock of the process named: for the clocks of traces alone.
struct Heartbeat {
  std::int32_t generation = 0;
  std::int32_t process = 0;
  std::int64_t agent_nanos = 0;        // when the agent sent it
  std::int64_t coordinator_nanos = 0;  // when it was answered
};

// From an agent, at the end: what its process has traced (trace_share.h).
struct TraceShare {
  std::int32_t generation = 0;
  std::int32_t process = 0;
  std::string events;
};

// To each agent: how the job ended. Of numbers, the bits.
struct JobEnded {
  std::int32_t generation = 0;
  std::int32_t code = 0;  // absl::StatusCode
  std::string message;
  std::int64_t steps = 0;
  std::uint64_t loss = 0, seconds = 0;
  bool stopped = false;
  std::int64_t evaluated_step = 0, evaluated_count = 0;
  std::uint64_t evaluated_loss = 0, evaluated_accuracy = 0;
  std::string checkpoint;
};

// To the coordinator, in its process: the crew that it completes, and whom it
// tells when that is done.
struct Muster {
  std::shared_ptr<Crew> crew;
  SupervisorActor supervisor;
};

// From an agent: it has heard the end.
struct Farewell {
  std::int32_t generation = 0;
  std::int32_t process = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Member& x) {
  return f(caf::meta::type_name("troupe.member"), x.process, x.ranks, x.host,
           x.pid, x.data_host);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Join& x) {
  return f(caf::meta::type_name("troupe.join"), x.member, x.nonce, x.agent,
           x.processes, x.version, x.agreement);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Refused& x) {
  return f(caf::meta::type_name("troupe.refused"), x.code, x.message);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Welcome& x) {
  return f(caf::meta::type_name("troupe.welcome"), x.generation, x.nonce,
           x.members, x.token, x.plan, x.resume_path);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SetKey& x) {
  return f(caf::meta::type_name("troupe.set_key"), x.key, x.value);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, GetKey& x) {
  return f(caf::meta::type_name("troupe.get_key"), x.key);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, KeyValue& x) {
  return f(caf::meta::type_name("troupe.key_value"), x.key, x.value);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, GetSupervisor& x) {
  return f(caf::meta::type_name("troupe.get_supervisor"), x.generation);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SupervisorIs& x) {
  return f(caf::meta::type_name("troupe.supervisor_is"), x.supervisor);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CrewReady& x) {
  return f(caf::meta::type_name("troupe.crew_ready"), x.generation, x.process,
           x.ranks, x.checkpointer);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Heartbeat& x) {
  return f(caf::meta::type_name("troupe.heartbeat"), x.generation, x.process,
           x.agent_nanos, x.coordinator_nanos);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, TraceShare& x) {
  return f(caf::meta::type_name("troupe.trace_share"), x.generation, x.process,
           x.events);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, JobEnded& x) {
  return f(caf::meta::type_name("troupe.job_ended"), x.generation, x.code,
           x.message, x.steps, x.loss, x.seconds, x.stopped, x.evaluated_step,
           x.evaluated_count, x.evaluated_loss, x.evaluated_accuracy,
           x.checkpoint);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Farewell& x) {
  return f(caf::meta::type_name("troupe.farewell"), x.generation, x.process);
}

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Muster)

CAF_BEGIN_TYPE_ID_BLOCK(troupe_cluster, caf::id_block::troupe::end)
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::Member))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::Join))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::Welcome))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::Refused))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::SetKey))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::GetKey))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::KeyValue))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::GetSupervisor))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::SupervisorIs))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::CrewReady))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::Muster))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::Heartbeat))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::TraceShare))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::JobEnded))
CAF_ADD_TYPE_ID(troupe_cluster, (troupe::actors::Farewell))
CAF_ADD_ATOM(troupe_cluster, troupe::actors, beat_atom, "beat")
CAF_END_TYPE_ID_BLOCK(troupe_cluster)

namespace troupe::actors {

// AddMessageTypes() with these, too.
void AddClusterMessageTypes(caf::actor_system_config& config);

// Answers come as messages of their own: whoever waits for one hears of a lost
// process, and of the end, in the same mailbox.
using AgentActor =
    caf::typed_actor<caf::reacts_to<Heartbeat>, caf::reacts_to<JobEnded>,
                     caf::reacts_to<Welcome>,     // who the others are
                     caf::reacts_to<Failure>,     // process 0 cannot be heard
                     caf::reacts_to<CrewReady>,   // whom to end then
                     caf::reacts_to<RankWaits>,   // of a rank that was asked
                     caf::reacts_to<halt_atom>,   // a stop was requested here
                     caf::reacts_to<ask_atom>,    // to itself
                     caf::reacts_to<beat_atom>>;  // to itself

using CoordinatorActor = caf::typed_actor<
    caf::reacts_to<Join>,           // -> Welcome, or Refused
    caf::reacts_to<Welcome>,        // what all are to be told, from process 0
    caf::reacts_to<SetKey>,         //
    caf::reacts_to<GetKey>,         // -> KeyValue, or Refused
    caf::reacts_to<GetSupervisor>,  // -> SupervisorIs, or Refused
    caf::reacts_to<CrewReady>, caf::reacts_to<Muster>,
    caf::reacts_to<Heartbeat>,  // -> Heartbeat
    caf::reacts_to<Failure>,    // of a process that has no rank yet
    caf::reacts_to<halt_atom>, caf::reacts_to<JobEnded>,
    caf::reacts_to<TraceShare>, caf::reacts_to<Farewell>,
    caf::reacts_to<beat_atom>>;  // to itself

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_CLUSTER_MESSAGES_H_

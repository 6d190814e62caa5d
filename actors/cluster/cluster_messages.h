// The protocol between the processes of a job, in addition to that of its ranks
// (actors/protocol/messages.h): joining, the key-value store, signs of life,
// the end. The coordinator in process 0 exchanges these messages with each
// process. All but Muster can be serialised, and none has a float.

#ifndef ACTORS_CLUSTER_CLUSTER_MESSAGES_H_
#define ACTORS_CLUSTER_CLUSTER_MESSAGES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "actors/protocol/messages.h"
#include "actors/setup/roster.h"

namespace troupe::actors {

struct Crew;  // actors/supervision/crew.h

// A process's request to join the job. The number of processes, the version and
// the agreement must be the same in all processes (join_round.h).
struct Join {
  Member member;
  std::uint64_t nonce = 0;      // identifies the request; copied to Welcome
  caf::strong_actor_ptr agent;  // null in process 0
  std::int32_t processes = 0;
  std::string version;    // version of the binary
  std::string agreement;  // ClusterOptions::agreement
  static constexpr char kName[] = "troupe.join";
  auto fields() {
    return std::tie(member, nonce, agent, processes, version, agreement);
  }
};

// The answer to Join when all processes have joined: the decisions of process 0
// for all of them.
struct Welcome {
  std::int32_t generation = 0;
  std::uint64_t nonce = 0;
  std::vector<Member> members;  // one for each process
  std::string token;            // shared secret of data connections
  std::string plan;             // JSON: pipeline/plan_json.h
  std::string resume_path;      // the checkpoint to resume from; empty: none
  std::string folder_mark;      // CheckpointFolder::mark()
  static constexpr char kName[] = "troupe.welcome";
  auto fields() {
    return std::tie(generation, nonce, members, token, plan, resume_path,
                    folder_mark);
  }
};

// The answer to any request that cannot be fulfilled. After a failure every
// later request is refused too.
struct Refused {
  std::int32_t code = 0;  // absl::StatusCode
  std::string message;
  static constexpr char kName[] = "troupe.refused";
  auto fields() { return std::tie(code, message); }
};

// The key-value store. GetKey is answered once the key is set.
struct SetKey {
  std::string key, value;
  static constexpr char kName[] = "troupe.set_key";
  auto fields() { return std::tie(key, value); }
};
struct GetKey {
  std::string key;
  static constexpr char kName[] = "troupe.get_key";
  auto fields() { return std::tie(key); }
};
struct KeyValue {
  std::string key, value;
  static constexpr char kName[] = "troupe.key_value";
  auto fields() { return std::tie(key, value); }
};

// Asks for the supervisor, to which the actors of a process report. Answered
// once the supervisor is spawned.
struct GetSupervisor {
  std::int32_t generation = 0;
  static constexpr char kName[] = "troupe.get_supervisor";
  auto fields() { return std::tie(generation); }
};
struct SupervisorIs {
  caf::strong_actor_ptr supervisor;
  static constexpr char kName[] = "troupe.supervisor_is";
  auto fields() { return std::tie(supervisor); }
};

// Reports that the actors of a process are spawned.
struct CrewReady {
  std::int32_t generation = 0;
  std::int32_t process = 0;
  std::vector<caf::strong_actor_ptr> ranks;  // sorted by rank
  caf::strong_actor_ptr checkpointer;
  bool has_folder = true;  // ProcessContext::has_folder
  static constexpr char kName[] = "troupe.crew_ready";
  auto fields() {
    return std::tie(generation, process, ranks, checkpointer, has_folder);
  }
};

// A sign of life, sent in both directions several times in a liveness time-out.
// Times are nanoseconds since 1970, each by the clock of the process that the
// field names; they serve only to align the clocks of traces.
struct Heartbeat {
  std::int32_t generation = 0;
  std::int32_t process = 0;
  std::int64_t agent_nanos = 0;        // time at which the agent sent it
  std::int64_t coordinator_nanos = 0;  // time of the coordinator's answer
  static constexpr char kName[] = "troupe.heartbeat";
  auto fields() {
    return std::tie(generation, process, agent_nanos, coordinator_nanos);
  }
};

// Trace events of a process, sent by its agent at the end (trace_share.h).
struct TraceShare {
  std::int32_t generation = 0;
  std::int32_t process = 0;
  std::string events;
  static constexpr char kName[] = "troupe.trace_share";
  auto fields() { return std::tie(generation, process, events); }
};

// The outcome of the job, sent to each agent. Doubles travel as their bits.
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
  static constexpr char kName[] = "troupe.job_ended";
  auto fields() {
    return std::tie(generation, code, message, steps, loss, seconds, stopped,
                    evaluated_step, evaluated_count, evaluated_loss,
                    evaluated_accuracy, checkpoint);
  }
};

// The supervisor and its crew, sent to the coordinator in the same process
// (in-process). The coordinator fills in the actors of other processes, then
// sends `begin` to the supervisor.
struct Muster {
  std::shared_ptr<Crew> crew;
  SupervisorActor supervisor;
};

// An agent's confirmation that it has received JobEnded.
struct Farewell {
  std::int32_t generation = 0;
  std::int32_t process = 0;
  static constexpr char kName[] = "troupe.farewell";
  auto fields() { return std::tie(generation, process); }
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Member& x) {
  return f(caf::meta::type_name("troupe.member"), x.process, x.ranks, x.host,
           x.pid, x.data_host);
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

// Registers these messages, and those of AddMessageTypes().
void AddClusterMessageTypes(caf::actor_system_config& config);

// Answers are messages of their own and not CAF responses: a process that waits
// for one also receives, in the same mailbox, the loss of a process and the
// end of the job.
using AgentActor =
    caf::typed_actor<caf::reacts_to<Heartbeat>, caf::reacts_to<JobEnded>,
                     caf::reacts_to<Welcome>,     // the other processes
                     caf::reacts_to<Failure>,     // this process has failed
                     caf::reacts_to<CrewReady>,   // this process's actors
                     caf::reacts_to<RankWaits>,   // a rank's answer to AskWaits
                     caf::reacts_to<halt_atom>,   // a stop was requested here
                     caf::reacts_to<ask_atom>,    // to itself
                     caf::reacts_to<beat_atom>>;  // to itself

using CoordinatorActor = caf::typed_actor<
    caf::reacts_to<Join>,           // -> Welcome, or Refused
    caf::reacts_to<Welcome>,        // the decisions of process 0
    caf::reacts_to<SetKey>,         //
    caf::reacts_to<GetKey>,         // -> KeyValue, or Refused
    caf::reacts_to<GetSupervisor>,  // -> SupervisorIs, or Refused
    caf::reacts_to<CrewReady>, caf::reacts_to<Muster>,
    caf::reacts_to<Heartbeat>,  // -> Heartbeat
    caf::reacts_to<Failure>,    // a process has failed or lost another
    caf::reacts_to<halt_atom>, caf::reacts_to<JobEnded>,
    caf::reacts_to<TraceShare>, caf::reacts_to<Farewell>,
    caf::reacts_to<beat_atom>>;  // to itself

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_CLUSTER_MESSAGES_H_

#include "actors/cluster/rendezvous.h"

#include <unistd.h>

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "actors/caf/strand_scheduler.h"
#include "actors/caf/thread_supply.h"
#include "actors/cluster/agent.h"
#include "actors/cluster/control_client.h"
#include "actors/cluster/control_plane.h"
#include "actors/cluster/coordinator.h"
#include "actors/cluster/host_address.h"
#include "actors/cluster/peer_links.h"
#include "actors/protocol/strand_guard.h"
#include "actors/setup/job_outcome.h"
#include "actors/setup/job_setup.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/tls/random_bytes.h"
#include "comm/connect/transports.h"

namespace troupe::actors {
namespace {

constexpr int kTokenBytes = 32;
constexpr std::int32_t kGeneration = 1;
// Threads of the actor system: one for the coordinator or agent, one for the
// clock.
constexpr int kThreads = 2;
// Time that process 0 waits at the end until the others have confirmed it, or
// another process for the outcome after its failure.
constexpr absl::Duration kFarewellTimeout = absl::Seconds(2);

struct MeetingConfig : caf::actor_system_config {
  explicit MeetingConfig(ThreadSupply& threads) {
    AddClusterMessageTypes(*this);
    RunOnThreads(threads, *this);
  }
};

absl::Status CheckOptions(const ClusterOptions& options) {
  if (options.process < 0 || options.process >= options.processes ||
      options.processes > kProcessesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the cluster has process ", options.process, " of ", options.processes,
        "; number them from 0, at most ", kProcessesMax));
  }
  // A library ends with the links that use it, which a job owns.
  const comm::TransportRule& wanted = comm::RuleOf(options.transport);
  if (wanted.library.empty()) return absl::OkStatus();
  std::vector<absl::string_view> able;
  for (const comm::TransportRule& rule : comm::Transports()) {
    if (rule.library.empty() && !rule.reach.empty()) able.push_back(rule.name);
  }
  return absl::UnimplementedError(
      absl::StrCat("transport ", wanted.name, " is for jobs; take ",
                   absl::StrJoin(able, " or "), " where there is none"));
}

// Returns the key that a process sets when it has all its links.
std::string ConnectedKey(int process) {
  return absl::StrCat("connected/", process);
}

// The part of one process. Like a ClusterJob, it has a coordinator in process 0
// and an agent in each other; the "job" ends when all links are connected.
class Meeting {
 public:
  Meeting(const ClusterOptions& options, std::unique_ptr<ThreadSupply> threads)
      : options_(options), threads_(std::move(threads)), config_(*threads_) {}
  ~Meeting() { Leave(); }

  absl::StatusOr<MetProcesses> Run(const std::string& agreement) {
    absl::StatusOr<MetProcesses> met = TryRun(agreement);
    if (met.ok()) return met;
    return Conclude(met.status());
  }

 private:
  bool decides() const { return options_.process == 0; }

  absl::StatusOr<MetProcesses> TryRun(const std::string& agreement) {
    TROUPE_RETURN_IF_ERROR(OpenNetwork(options_, config_));
    system_.emplace(config_);
    TROUPE_RETURN_IF_ERROR(ReachCoordinator());
    TROUPE_ASSIGN_OR_RETURN(const Welcome welcome, Join(agreement));
    MetProcesses met{Roster(welcome.members), welcome.generation, {}};
    TROUPE_ASSIGN_OR_RETURN(comm::PeerLinks peers,
                            ConnectPeers(options_, welcome, *client_));
    met.links = std::move(peers.links);
    TROUPE_RETURN_IF_ERROR(AwaitOthers());
    return met;
  }

  absl::Status ReachCoordinator() {
    if (!decides()) {
      TROUPE_ASSIGN_OR_RETURN(
          coordinator_,
          Connect(*system_, options_, absl::Now() + options_.join_timeout));
      return absl::OkStatus();
    }
    coordinator_ = system_->spawn(CoordinatorBehavior, options_, gone_,
                                  /*trace=*/nullptr);
    TROUPE_ASSIGN_OR_RETURN(const int port,
                            Publish(*system_, coordinator_, options_));
    return options_.on_listening ? options_.on_listening(port)
                                 : absl::OkStatus();
  }

  absl::StatusOr<Welcome> Join(const std::string& agreement) {
    client_.emplace(*system_, coordinator_, options_.give_up);
    if (decides()) {
      Welcome offer;
      offer.generation = kGeneration;
      offer.token = base::tls::RandomBytes(kTokenBytes);
      caf::anon_send(coordinator_, std::move(offer));
    } else {
      agent_ = system_->spawn(
          AgentBehavior, options_, coordinator_, client_->address(),
          /*trace=*/nullptr,
          [ended = ended_](const absl::StatusOr<JobResult>& result) {
            ended->Set(result);
          });
    }
    actors::Join join;
    join.member.process = options_.process;
    join.member.ranks = options_.ranks;
    join.member.host = HostName();
    join.member.pid = ::getpid();
    const std::string nonce = base::tls::RandomBytes(sizeof(join.nonce));
    std::memcpy(&join.nonce, nonce.data(), sizeof(join.nonce));
    join.agent = caf::actor_cast<caf::strong_actor_ptr>(agent_);
    join.processes = options_.processes;
    join.version = kTroupeVersion;
    join.agreement = agreement;
    TROUPE_ASSIGN_OR_RETURN(
        Welcome welcome,
        client_->Join(join, options_.join_timeout + options_.liveness_timeout));
    generation_ = welcome.generation;
    return welcome;
  }

  // Waits until every process has all its links and the control plane may end.
  absl::Status AwaitOthers() {
    if (!decides()) {
      TROUPE_RETURN_IF_ERROR(client_->Set(ConnectedKey(options_.process), "1"));
      if (!ended_->WaitFor(options_.join_timeout + options_.liveness_timeout)) {
        return absl::DeadlineExceededError(absl::StrCat(
            "process 0 did not say within ",
            absl::FormatDuration(options_.join_timeout),
            " that all processes are connected; see what it says"));
      }
      return ended_->Wait().status();
    }
    for (int p = 1; p < options_.processes; ++p) {
      TROUPE_RETURN_IF_ERROR(
          client_->Get(ConnectedKey(p), options_.join_timeout).status());
    }
    caf::anon_send(coordinator_, ToMessage(generation_, JobResult()));
    gone_->WaitForNotificationWithTimeout(kFarewellTimeout);
    return absl::OkStatus();
  }

  // Reports a failure of this process to the others. Returns the error that all
  // processes return.
  absl::Status Conclude(const absl::Status& own) {
    if (coordinator_ == nullptr) return own;
    if (decides()) {
      caf::anon_send(coordinator_, ToMessage(generation_, own));
      gone_->WaitForNotificationWithTimeout(kFarewellTimeout);
      return own;
    }
    if (agent_ == nullptr) return own;
    const absl::Status named = base::WithMessage(
        own, absl::StrCat("process ", options_.process, " (", HostName(),
                          ", pid ", ::getpid(), "): ", own.message()));
    caf::anon_send(agent_, MakeFailure(generation_, /*rank=*/-1, "", named));
    if (!client_->refused().ok() || !ended_->WaitFor(kFarewellTimeout)) {
      return own;
    }
    const absl::Status verdict = ended_->Wait().status();
    return verdict.ok() ? own : verdict;
  }

  void Leave() {
    client_.reset();
    const auto end = [](const auto& actor) {
      if (actor == nullptr) return;
      caf::anon_send_exit(caf::actor_cast<caf::actor>(actor),
                          caf::exit_reason::user_shutdown);
    };
    end(agent_);
    if (decides()) end(coordinator_);
    agent_ = nullptr;
    coordinator_ = nullptr;
  }

  const ClusterOptions options_;
  const std::shared_ptr<JobOutcome> ended_ = std::make_shared<JobOutcome>();
  std::unique_ptr<ThreadSupply> threads_;
  MeetingConfig config_;
  std::optional<caf::actor_system> system_;
  CoordinatorState::Gone gone_ = std::make_shared<absl::Notification>();
  CoordinatorActor coordinator_;
  AgentActor agent_;  // not in process 0
  std::optional<ControlClient> client_;
  std::int32_t generation_ = 0;  // none before the welcome
};

}  // namespace

absl::StatusOr<MetProcesses> MeetProcesses(const ClusterOptions& options,
                                           const std::string& agreement) {
  TROUPE_RETURN_IF_ERROR(CheckOptions(options));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ThreadSupply> threads,
                          StartActorThreads(kThreads));
  Meeting meeting(options, std::move(threads));
  return meeting.Run(agreement);
}

}  // namespace troupe::actors

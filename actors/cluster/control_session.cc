#include "actors/cluster/control_session.h"

#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "actors/caf/strand_scheduler.h"
#include "actors/cluster/agent.h"
#include "actors/cluster/control_plane.h"
#include "actors/cluster/host_address.h"
#include "actors/protocol/strand_guard.h"
#include "actors/setup/job_setup.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/tls/random_bytes.h"

namespace troupe::actors {
namespace {

constexpr int kTokenBytes = 32;
// Time that process 0 waits at the end until the others have confirmed it, or
// another process for the job's outcome after its failure to start.
constexpr absl::Duration kFarewellTimeout = absl::Seconds(2);

// Returns a random number that marks a process's Join and its answer.
std::uint64_t MakeNonce() {
  const std::string bytes = base::tls::RandomBytes(sizeof(std::uint64_t));
  std::uint64_t nonce;
  std::memcpy(&nonce, bytes.data(), sizeof(nonce));
  return nonce;
}

}  // namespace

ControlSession::Config::Config(ThreadSupply& threads) {
  AddClusterMessageTypes(*this);
  RunOnThreads(threads, *this);
}

ControlSession::ControlSession(const ClusterOptions& options,
                               std::unique_ptr<ThreadSupply> threads,
                               TraceSink* trace)
    : options_(options),
      trace_(trace),
      threads_(std::move(threads)),
      config_(*threads_) {}

absl::Status ControlSession::Open() {
  TROUPE_RETURN_IF_ERROR(OpenNetwork(options_, config_));
  system_.emplace(config_);
  TROUPE_RETURN_IF_ERROR(ReachCoordinator());
  client_.emplace(*system_, coordinator_, options_.give_up);
  if (decides()) return absl::OkStatus();
  agent_ = system_->spawn(
      AgentBehavior, options_, coordinator_, client_->address(), trace_,
      AgentState::OnEnd(
          [outcome = outcome_](const absl::StatusOr<JobResult>& result) {
            outcome->Set(result);
          }));
  return absl::OkStatus();
}

absl::Status ControlSession::ReachCoordinator() {
  if (!decides()) {
    TROUPE_ASSIGN_OR_RETURN(
        coordinator_,
        Connect(*system_, options_, absl::Now() + options_.join_timeout));
    return absl::OkStatus();
  }
  coordinator_ = system_->spawn(CoordinatorBehavior, options_, gone_, trace_);
  TROUPE_ASSIGN_OR_RETURN(const int port,
                          Publish(*system_, coordinator_, options_));
  return options_.on_listening ? options_.on_listening(port) : absl::OkStatus();
}

void ControlSession::Offer(Welcome offer) {
  offer.token = base::tls::RandomBytes(kTokenBytes);
  caf::anon_send(coordinator_, std::move(offer));
}

absl::StatusOr<Welcome> ControlSession::Join(const std::string& agreement) {
  actors::Join join;
  join.member.process = options_.process;
  join.member.ranks = options_.ranks;
  join.member.host = HostName();
  join.member.pid = ::getpid();
  join.nonce = MakeNonce();
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

void ControlSession::RequestHalt() {
  if (agent_ != nullptr) {
    caf::anon_send(agent_, halt_atom::value);
  } else {
    caf::anon_send(coordinator_, halt_atom::value);
  }
}

std::function<void(int lost, const absl::Status& why)>
ControlSession::Reporter() const {
  return [agent = agent_, coordinator = coordinator_, generation = generation_](
             int lost, const absl::Status& why) {
    Failure failure = MakeFailure(generation, /*rank=*/-1, "", why);
    failure.process = lost;
    if (agent != nullptr) {
      caf::anon_send(agent, std::move(failure));
    } else {
      caf::anon_send(coordinator, std::move(failure));
    }
  };
}

void ControlSession::End(const absl::StatusOr<JobResult>& result) {
  caf::anon_send(coordinator_, ToMessage(generation_, result));
}

void ControlSession::AwaitFarewells() {
  if (decides() && coordinator_ != nullptr) {
    gone_->WaitForNotificationWithTimeout(kFarewellTimeout);
  }
}

absl::Status ControlSession::FailToStart(const absl::Status& own,
                                         const absl::Status& reported) {
  if (coordinator_ == nullptr) return own;
  if (!decides()) {
    Reporter()(/*lost=*/-1, reported);
    return VerdictOr(own);
  }
  // There may be no supervisor yet, which would end the job.
  End(reported);
  AwaitFarewells();
  return own;
}

absl::Status ControlSession::VerdictOr(const absl::Status& own) {
  if (!client_->refused().ok()) return own;
  if (!outcome_->WaitFor(kFarewellTimeout)) return own;
  const absl::Status verdict = outcome_->Wait().status();
  // `own` also has the fields to blame.
  const bool is_own = verdict.message() == own.message();
  return verdict.ok() || is_own ? own : verdict;
}

absl::Status ControlSession::InThisProcess(const absl::Status& status) const {
  return base::WithMessage(
      status, absl::StrCat("process ", options_.process, " (", HostName(),
                           ", pid ", ::getpid(), "): ", status.message()));
}

void ControlSession::Leave() {
  client_.reset();
  // An ordinary message is processed after those sent before: among these may
  // be the CrewReady by which the agent gets the ranks that it must end.
  const auto end = [](const auto& actor) {
    if (actor == nullptr) return;
    caf::anon_send(
        caf::actor_cast<caf::actor>(actor),
        caf::exit_msg{caf::actor_addr(), caf::exit_reason::user_shutdown});
  };
  end(agent_);
  if (decides()) end(coordinator_);
  agent_ = nullptr;
  coordinator_ = nullptr;
}

}  // namespace troupe::actors

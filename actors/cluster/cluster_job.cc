#include "actors/cluster/cluster_job.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "actors/caf/strand_scheduler.h"
#include "actors/caf/thread_supply.h"
#include "actors/cluster/agent.h"
#include "actors/cluster/control_client.h"
#include "actors/cluster/control_plane.h"
#include "actors/cluster/coordinator.h"
#include "actors/cluster/host_address.h"
#include "actors/cluster/join_round.h"
#include "actors/cluster/peer_links.h"
#include "actors/protocol/strand_guard.h"
#include "actors/setup/job_setup.h"
#include "actors/setup/rank_setup.h"
#include "actors/strands/fabric_stage_link.h"
#include "actors/supervision/crew.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/tls/random_bytes.h"
#include "comm/connect/transports.h"
#include "comm/shm/shared_memory.h"
#include "pipeline/plan_json.h"

namespace troupe::actors {
namespace {

constexpr int kTokenBytes = 32;
// Time that process 0 waits at the end until the others have confirmed it, or
// another process for the job's outcome after its failure to start.
constexpr absl::Duration kFarewellTimeout = absl::Seconds(2);

// Returns a random number that marks this process's Join and its answer.
std::uint64_t MakeNonce() {
  const std::string bytes = base::tls::RandomBytes(sizeof(std::uint64_t));
  std::uint64_t nonce;
  std::memcpy(&nonce, bytes.data(), sizeof(nonce));
  return nonce;
}

struct NetworkedConfig : caf::actor_system_config {
  explicit NetworkedConfig(ThreadSupply& threads) {
    AddClusterMessageTypes(*this);
    RunOnThreads(threads, *this);
  }
};

absl::Status CheckOptions(const ClusterOptions& options) {
  if (options.processes >= 1 && options.processes <= kProcessesMax &&
      options.process >= 0 && options.process < options.processes &&
      options.ranks >= 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("JobSpec: cluster has process ", options.process, " of ",
                   options.processes, " with ", options.ranks,
                   " ranks; number processes from 0, at most ", kProcessesMax,
                   ", and give each a rank"));
}

absl::Status CheckRanks(const Roster& roster, const pipeline::Plan& plan) {
  if (roster.ranks() == plan.mesh.size()) return absl::OkStatus();
  std::string have;
  for (int process = 0; process < roster.processes(); ++process) {
    absl::StrAppend(&have, have.empty() ? "" : ", ",
                    roster.member(process).ranks);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("mesh ", plan.mesh.ToString(), " has ", plan.mesh.size(),
                   " ranks, but the processes have ", roster.ranks(), " (",
                   have, "); start as many"));
}

class ClusterJob : public RunningJob {
 public:
  ClusterJob(const JobSpec& spec, std::unique_ptr<ThreadSupply> threads)
      : options_(*spec.cluster),
        trace_(spec.trace),
        threads_(std::move(threads)),
        config_(*threads_) {}

  ~ClusterJob() override {
    if (begun_ && !outcome_->HasBeenSet()) {
      Tell(absl::CancelledError("the job was destroyed before it had ended"));
      Wait().IgnoreError();
    }
    Leave();
  }

  absl::Status Start(const JobSpec& spec, JobObserver* observer) {
    const absl::Status status = TryStart(spec, observer);
    if (status.ok()) return status;
    Tell(status);
    return VerdictOr(status);
  }

  void RequestStop() override {
    if (agent_ != nullptr) {
      caf::anon_send(agent_, halt_atom::value);
    } else {
      caf::anon_send(coordinator_, halt_atom::value);
    }
  }

  absl::StatusOr<JobResult> Wait() override {
    absl::StatusOr<JobResult> result = outcome_->Wait();
    // The others must have received the outcome before this process may end.
    AwaitFarewells();
    return result;
  }

 private:
  // Whether this is process 0, which makes the decisions for all.
  bool decides() const { return options_.process == 0; }

  absl::Status TryStart(const JobSpec& spec, JobObserver* observer) {
    TROUPE_RETURN_IF_ERROR(OpenNetwork(options_, config_));
    system_.emplace(config_);
    TROUPE_RETURN_IF_ERROR(ReachCoordinator());
    TROUPE_RETURN_IF_ERROR(JoinAndPrepare(spec, observer));
    TROUPE_RETURN_IF_ERROR(ConnectRanks());
    return SpawnActors(observer);
  }

  // Spawns the coordinator in process 0; connects to it in the others.
  absl::Status ReachCoordinator() {
    if (decides()) {
      coordinator_ =
          system_->spawn(CoordinatorBehavior, options_, gone_, trace_);
      TROUPE_ASSIGN_OR_RETURN(const int port,
                              Publish(*system_, coordinator_, options_));
      return options_.on_listening ? options_.on_listening(port)
                                   : absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(
        coordinator_,
        Connect(*system_, options_, absl::Now() + options_.join_timeout));
    return absl::OkStatus();
  }

  absl::Status JoinAndPrepare(const JobSpec& spec, JobObserver* observer) {
    client_.emplace(*system_, coordinator_, options_.give_up);
    if (decides()) {
      TROUPE_ASSIGN_OR_RETURN(setup_, PrepareJob(spec, observer));
      TROUPE_RETURN_IF_ERROR(OfferDecision());
    } else {
      agent_ = system_->spawn(AgentBehavior, options_, coordinator_,
                              client_->address(), trace_, EndOnce());
    }
    Join join;
    join.member.process = options_.process;
    join.member.ranks = options_.ranks;
    join.member.host = HostName();
    join.member.pid = ::getpid();
    join.nonce = nonce_;
    join.agent = caf::actor_cast<caf::strong_actor_ptr>(agent_);
    join.processes = options_.processes;
    join.version = kTroupeVersion;
    join.agreement = options_.agreement;
    TROUPE_ASSIGN_OR_RETURN(
        welcome_,
        client_->Join(join, options_.join_timeout + options_.liveness_timeout));
    TROUPE_RETURN_IF_ERROR(CheckMembers(welcome_.members, options_.processes));
    if (!decides()) TROUPE_RETURN_IF_ERROR(AdoptDecision(spec, observer));
    process_ = setup_.process;
    process_->links.number = options_.process;
    process_->generation = welcome_.generation;
    process_->links.roster = std::make_shared<const Roster>(welcome_.members);
    TROUPE_RETURN_IF_ERROR(
        CheckRanks(*process_->links.roster, *process_->plan));
    if (decides()) return absl::OkStatus();
    const absl::Status status =
        CheckFolder(*process_, welcome_.folder_mark, options_.warn);
    return status.ok() ? status : InThisProcess(status);
  }

  absl::Status OfferDecision() {
    Welcome offer;
    offer.generation = setup_.process->generation;
    offer.token = base::tls::RandomBytes(kTokenBytes);
    offer.plan = pipeline::PlanToJson(*setup_.process->plan);
    offer.resume_path = setup_.process->resume.path;
    offer.folder_mark = setup_.process->folder.mark();
    caf::anon_send(coordinator_, std::move(offer));
    return absl::OkStatus();
  }

  absl::Status AdoptDecision(const JobSpec& spec, JobObserver* observer) {
    Decision decision;
    TROUPE_ASSIGN_OR_RETURN(pipeline::Plan plan,
                            pipeline::PlanFromJson(welcome_.plan));
    decision.plan = std::make_shared<const pipeline::Plan>(std::move(plan));
    decision.resume_path = welcome_.resume_path;
    absl::StatusOr<JobSetup> setup =
        PrepareJob(spec, observer, /*hooks=*/nullptr, &decision);
    if (!setup.ok()) return InThisProcess(setup.status());
    setup_ = *std::move(setup);
    return absl::OkStatus();
  }

  absl::Status ConnectRanks() {
    const Roster& roster = *process_->links.roster;
    comm::FabricOptions options;
    options.process = options_.process;
    options.process_of = roster.ProcessesOfRanks();
    options.generation = welcome_.generation;
    for (int p = 0; p < roster.processes(); ++p) {
      options.names.push_back(roster.Describe(p));
    }
    options.on_lost = Reporter();
    TROUPE_ASSIGN_OR_RETURN(comm::PeerLinks peers,
                            ConnectPeers(options_, welcome_, *client_));
    process_->links.transports = DescribeTransports(peers.links);
    options.links = std::move(peers.links);
    give_up_transport_ = std::move(peers.give_up);
    // Gradients in a GPU's memory cannot be shared in this way.
    if (SharesHost(roster) && process_->spec->device.is_host()) {
      process_->links.shared_memory = ShareMemory();
      options.shared_memory = process_->links.shared_memory;
    }
    TROUPE_ASSIGN_OR_RETURN(process_->links.fabric,
                            comm::Fabric::Make(std::move(options)));
    const int first = roster.FirstRankOf(options_.process);
    absl::StatusOr<std::vector<RankContextPtr>> ranks =
        MakeRanks(*process_, first, roster.FirstRankOf(options_.process + 1),
                  SpanningGroups(*process_, *client_));
    if (!ranks.ok()) return InThisProcess(ranks.status());
    process_->ranks = *std::move(ranks);
    return absl::OkStatus();
  }

  // Adds this process's name to an error that only it sees, for the others.
  absl::Status InThisProcess(const absl::Status& status) const {
    return base::WithMessage(
        status, absl::StrCat("process ", options_.process, " (", HostName(),
                             ", pid ", ::getpid(), "): ", status.message()));
  }

  // Whether another process of the job is on this host, and the transport may
  // use shared memory.
  bool SharesHost(const Roster& roster) const {
    if (!comm::RuleOf(options_.transport).shares_memory) return false;
    const std::string& host = roster.member(options_.process).host;
    for (int p = 0; p < roster.processes(); ++p) {
      if (p != options_.process && roster.member(p).host == host) return true;
    }
    return false;
  }

  std::shared_ptr<comm::SharedMemory> ShareMemory() const {
    comm::SharedMemory::Options options;
    options.on_refused = [warn = options_.warn](const absl::Status& why) {
      if (!warn) return;
      warn(
          absl::StrCat("gradients travel to the other processes of this host "
                       "by copies, more slowly: ",
                       why.message()));
    };
    return std::make_shared<comm::SharedMemory>(std::move(options));
  }

  absl::Status SpawnActors(JobObserver* observer) {
    AnnounceJob(*process_, observer);
    if (decides()) {
      process_->outcome.OnSet(
          [coordinator = coordinator_, generation = welcome_.generation,
           outcome = outcome_](const absl::StatusOr<JobResult>& result) {
            caf::anon_send(coordinator, ToMessage(generation, result));
            outcome->Set(result);
          });
      SupervisedCrew all =
          SpawnSupervised(*system_, process_, std::move(setup_.checkpoint));
      caf::anon_send(coordinator_, Muster{all.crew, all.supervisor});
    } else {
      // The coordinator's time-out is the shorter one: its error names the
      // process that is late.
      TROUPE_ASSIGN_OR_RETURN(
          const SupervisorActor supervisor,
          client_->AwaitSupervisor(
              welcome_.generation,
              options_.join_timeout + options_.liveness_timeout));
      const LocalCrew crew = SpawnRanks(*system_, process_, supervisor,
                                        std::move(setup_.checkpoint));
      CrewReady ready;
      ready.generation = welcome_.generation;
      ready.process = options_.process;
      for (const RankActor& rank : crew.ranks) {
        ready.ranks.push_back(caf::actor_cast<caf::strong_actor_ptr>(rank));
      }
      ready.checkpointer =
          caf::actor_cast<caf::strong_actor_ptr>(crew.checkpointers.front());
      caf::anon_send(agent_, ready);
      caf::anon_send(coordinator_, ready);
    }
    begun_ = true;
    return absl::OkStatus();
  }

  // Returns the reason for the job's failure that all processes report: this
  // one's own may not be the first. The answer also shows that process 0 has
  // received it.
  absl::Status VerdictOr(const absl::Status& own) {
    if (agent_ == nullptr || !client_->refused().ok()) return own;
    if (!outcome_->WaitFor(kFarewellTimeout)) return own;
    const absl::Status verdict = outcome_->Wait().status();
    // `own` also has the fields to blame.
    const bool is_own = verdict.message() == own.message();
    return verdict.ok() || is_own ? own : verdict;
  }

  // Returns the agent's callback, which sets the outcome in a process without
  // the supervisor.
  AgentState::OnEnd EndOnce() {
    return [outcome = outcome_](const absl::StatusOr<JobResult>& result) {
      outcome->Set(result);
    };
  }

  // Returns a function that reports to the job that this process has failed, or
  // has lost the process `lost`.
  std::function<void(int lost, const absl::Status&)> Reporter() {
    return [agent = agent_, coordinator = coordinator_,
            generation = welcome_.generation](int lost,
                                              const absl::Status& status) {
      Failure failure = MakeFailure(generation, /*rank=*/-1, "", status);
      failure.process = lost;
      if (agent != nullptr) {
        caf::anon_send(agent, std::move(failure));
      } else {
        caf::anon_send(coordinator, std::move(failure));
      }
    };
  }

  void Tell(const absl::Status& status) {
    if (coordinator_ == nullptr) return;
    if (begun_ || !decides()) {
      Reporter()(/*lost=*/-1, status);
      return;
    }
    // The supervisor, which would end the job, is not spawned yet.
    caf::anon_send(coordinator_, ToMessage(welcome_.generation, status));
    AwaitFarewells();
  }

  void AwaitFarewells() {
    if (decides() && coordinator_ != nullptr) {
      gone_->WaitForNotificationWithTimeout(kFarewellTimeout);
    }
  }

  void Leave() {
    // A transport's library ends with its last link, once all processes have
    // got that far. After a failure they may not, so it is given up.
    const bool failed = !begun_ || !outcome_->Wait().ok();
    if (give_up_transport_ && failed) {
      give_up_transport_(absl::CancelledError("the job has failed"));
    }
    if (process_ != nullptr && process_->links.fabric != nullptr) {
      RefuseTransfers(*process_);
    }
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

  const ClusterOptions options_;
  TraceSink* const trace_;
  const std::shared_ptr<JobOutcome> outcome_ = std::make_shared<JobOutcome>();
  std::shared_ptr<ProcessContext> process_;
  JobSetup setup_;
  std::unique_ptr<ThreadSupply> threads_;
  NetworkedConfig config_;
  std::optional<caf::actor_system> system_;
  CoordinatorState::Gone gone_ = std::make_shared<absl::Notification>();
  CoordinatorActor coordinator_;
  AgentActor agent_;  // null in process 0
  std::optional<ControlClient> client_;
  // PeerLinks::give_up of the links in use.
  std::function<void(const absl::Status& why)> give_up_transport_;
  const std::uint64_t nonce_ = MakeNonce();
  Welcome welcome_;
  bool begun_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RunningJob>> StartClusterJob(
    const JobSpec& spec, JobObserver* observer) {
  TROUPE_RETURN_IF_ERROR(CheckOptions(*spec.cluster));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ThreadSupply> threads,
                          StartActorThreads(JobThreads(spec.cluster->ranks)));
  auto job = std::make_unique<ClusterJob>(spec, std::move(threads));
  TROUPE_RETURN_IF_ERROR(job->Start(spec, observer));
  return job;
}

}  // namespace troupe::actors

#include "actors/cluster/cluster_job.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/caf/strand_scheduler.h"
#include "actors/caf/thread_supply.h"
#include "actors/cluster/agent.h"
#include "actors/cluster/control_session.h"
#include "actors/cluster/join_round.h"
#include "actors/cluster/peer_links.h"
#include "actors/setup/job_setup.h"
#include "actors/setup/rank_setup.h"
#include "actors/strands/fabric_stage_link.h"
#include "actors/supervision/spawn_crew.h"
#include "base/check.h"
#include "comm/connect/transports.h"
#include "comm/shm/shared_memory.h"
#include "pipeline/plan_json.h"

namespace troupe::actors {
namespace {

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
      : session_(*spec.cluster, std::move(threads), spec.trace) {}

  ~ClusterJob() override {
    if (begun_ && !session_.outcome()->HasBeenSet()) {
      session_.Reporter()(
          /*lost=*/-1,
          absl::CancelledError("the job was destroyed before it had ended"));
      Wait().IgnoreError();
    }
    Leave();
  }

  absl::Status Start(const JobSpec& spec, JobObserver* observer) {
    const absl::Status status = TryStart(spec, observer);
    return status.ok() ? status : session_.FailToStart(status, status);
  }

  void RequestStop() override { session_.RequestHalt(); }

  absl::StatusOr<JobResult> Wait() override {
    absl::StatusOr<JobResult> result = session_.outcome()->Wait();
    session_.AwaitFarewells();
    return result;
  }

 private:
  const ClusterOptions& cluster() const { return session_.options(); }

  absl::Status TryStart(const JobSpec& spec, JobObserver* observer) {
    TROUPE_RETURN_IF_ERROR(session_.Open());
    TROUPE_RETURN_IF_ERROR(JoinAndPrepare(spec, observer));
    TROUPE_RETURN_IF_ERROR(ConnectRanks());
    return SpawnActors(observer);
  }

  absl::Status JoinAndPrepare(const JobSpec& spec, JobObserver* observer) {
    if (session_.decides()) {
      TROUPE_ASSIGN_OR_RETURN(setup_, PrepareJob(spec, observer));
      OfferDecision();
    }
    TROUPE_ASSIGN_OR_RETURN(welcome_, session_.Join(cluster().agreement));
    TROUPE_RETURN_IF_ERROR(CheckMembers(welcome_.members, cluster().processes));
    if (!session_.decides()) {
      TROUPE_RETURN_IF_ERROR(AdoptDecision(spec, observer));
    }
    process_ = setup_.process;
    process_->links.number = cluster().process;
    process_->generation = welcome_.generation;
    process_->links.roster = std::make_shared<const Roster>(welcome_.members);
    TROUPE_RETURN_IF_ERROR(
        CheckRanks(*process_->links.roster, *process_->plan));
    if (session_.decides()) return absl::OkStatus();
    const absl::Status status =
        CheckFolder(*process_, welcome_.folder_mark, cluster().warn);
    return status.ok() ? status : session_.InThisProcess(status);
  }

  void OfferDecision() {
    Welcome offer;
    offer.generation = setup_.process->generation;
    offer.plan = pipeline::PlanToJson(*setup_.process->plan);
    offer.resume_path = setup_.process->resume.path;
    offer.folder_mark = setup_.process->folder.mark();
    session_.Offer(std::move(offer));
  }

  absl::Status AdoptDecision(const JobSpec& spec, JobObserver* observer) {
    Decision decision;
    TROUPE_ASSIGN_OR_RETURN(pipeline::Plan plan,
                            pipeline::PlanFromJson(welcome_.plan));
    decision.plan = std::make_shared<const pipeline::Plan>(std::move(plan));
    decision.resume_path = welcome_.resume_path;
    absl::StatusOr<JobSetup> setup =
        PrepareJob(spec, observer, /*hooks=*/nullptr, &decision);
    if (!setup.ok()) return session_.InThisProcess(setup.status());
    setup_ = *std::move(setup);
    return absl::OkStatus();
  }

  absl::Status ConnectRanks() {
    const Roster& roster = *process_->links.roster;
    comm::FabricOptions options;
    options.process = cluster().process;
    options.process_of = roster.ProcessesOfRanks();
    options.generation = welcome_.generation;
    for (int p = 0; p < roster.processes(); ++p) {
      options.names.push_back(roster.Describe(p));
    }
    options.on_lost = session_.Reporter();
    TROUPE_ASSIGN_OR_RETURN(
        comm::PeerLinks peers,
        ConnectPeers(cluster(), welcome_, session_.client()));
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
    const int first = roster.FirstRankOf(cluster().process);
    absl::StatusOr<std::vector<RankContextPtr>> ranks =
        MakeRanks(*process_, first, roster.FirstRankOf(cluster().process + 1),
                  SpanningGroups(*process_, session_.client()));
    if (!ranks.ok()) return session_.InThisProcess(ranks.status());
    process_->ranks = *std::move(ranks);
    return absl::OkStatus();
  }

  // Whether another process of the job is on this host, and the transport may
  // use shared memory.
  bool SharesHost(const Roster& roster) const {
    if (!comm::RuleOf(cluster().transport).shares_memory) return false;
    const std::string& host = roster.member(cluster().process).host;
    for (int p = 0; p < roster.processes(); ++p) {
      if (p != cluster().process && roster.member(p).host == host) return true;
    }
    return false;
  }

  std::shared_ptr<comm::SharedMemory> ShareMemory() const {
    comm::SharedMemory::Options options;
    options.on_refused = [warn = cluster().warn](const absl::Status& why) {
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
    if (session_.decides()) {
      process_->outcome.OnSet([coordinator = session_.coordinator(),
                               generation = welcome_.generation,
                               outcome = session_.outcome()](
                                  const absl::StatusOr<JobResult>& result) {
        caf::anon_send(coordinator, ToMessage(generation, result));
        outcome->Set(result);
      });
      SupervisedCrew all = SpawnSupervised(session_.system(), process_,
                                           std::move(setup_.checkpoint));
      caf::anon_send(session_.coordinator(), Muster{all.crew, all.supervisor});
    } else {
      // The coordinator's time-out is the shorter one: its error names the
      // process that is late.
      TROUPE_ASSIGN_OR_RETURN(
          const SupervisorActor supervisor,
          session_.client().AwaitSupervisor(
              welcome_.generation,
              cluster().join_timeout + cluster().liveness_timeout));
      const LocalCrew crew = SpawnRanks(session_.system(), process_, supervisor,
                                        std::move(setup_.checkpoint));
      CrewReady ready;
      ready.generation = welcome_.generation;
      ready.process = cluster().process;
      ready.has_folder = process_->has_folder;
      for (const RankActor& rank : crew.ranks) {
        ready.ranks.push_back(caf::actor_cast<caf::strong_actor_ptr>(rank));
      }
      ready.checkpointer =
          caf::actor_cast<caf::strong_actor_ptr>(crew.checkpointers.front());
      caf::anon_send(session_.agent(), ready);
      caf::anon_send(session_.coordinator(), ready);
    }
    begun_ = true;
    return absl::OkStatus();
  }

  void Leave() {
    // A transport's library ends with its last link, once all processes have
    // got that far. After a failure they may not, so it is given up.
    const bool failed = !begun_ || !session_.outcome()->Wait().ok();
    if (give_up_transport_ && failed) {
      give_up_transport_(absl::CancelledError("the job has failed"));
    }
    if (process_ != nullptr && process_->links.fabric != nullptr) {
      RefuseTransfers(*process_);
    }
    session_.Leave();
  }

  std::shared_ptr<ProcessContext> process_;
  JobSetup setup_;
  ControlSession session_;
  // PeerLinks::give_up of the links in use.
  std::function<void(const absl::Status& why)> give_up_transport_;
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

#include "tests/actors/cluster/simulated_process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/caf/actor_timeout.h"
#include "actors/protocol/strand_guard.h"
#include "actors/setup/rank_setup.h"
#include "actors/strands/fabric_stage_link.h"
#include "base/check.h"
#include "pipeline/plan_json.h"

namespace troupe::actors {
namespace {

// The same as in cluster_job.cc.
constexpr absl::Duration kFarewellTimeout = absl::Seconds(2);
// Generation of another attempt of the job.
constexpr std::int32_t kStaleGeneration = 7;

std::string KeyOf(int process) { return absl::StrCat("data/", process); }

}  // namespace

absl::Status NodeFiles::BeforeChange(const char* verb,
                                     const std::string& path) {
  TROUPE_RETURN_IF_ERROR(Check());
  if (left_ < 0 || (left_ > 0 && --left_ >= 0)) return absl::OkStatus();
  // Removing files needs no space.
  if (std::string(verb) == "remove") return absl::OkStatus();
  was_full_ = true;
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot ", verb, " ", path, ": no space left on device"));
}

absl::Status NodeData::Gather(absl::Span<const std::int64_t> indices,
                              std::int64_t epoch, const nn::Tensor& inputs,
                              const nn::Tensor& targets) const {
  if (reads_++ == bad_read_) return absl::DataLossError("a bad sample");
  return good_->Fill(indices, epoch, inputs, targets);
}

SimulatedProcess::SimulatedProcess(SimulatedWorld& world,
                                   SimulatedProcessOptions options)
    : world_(world),
      options_(std::move(options)),
      points_(world.scheduler),
      files_(
          disk_, [this] { return world_.network.is_gone(options_.node); },
          options_.disk_full_at),
      train_(
          std::make_shared<NodeData>(options_.spec.train, options_.bad_read)) {
  hooks_.window_max = 1 + world_.scheduler.draws().Bits32() % 4;
  if (world_.scheduler.draws().Below(3) == 0) linger_ = absl::Seconds(5);
  hooks_.after_step = [this](int, std::int64_t, const nn::ParameterArena&) {
    trained_ = true;
  };
  hooks_.mailbox_rounds = [this] {
    return static_cast<int>(world_.scheduler.draws().Bits32() % 4);
  };
}

void SimulatedProcess::SpawnCoordinator() {
  world_.gone = std::make_shared<absl::Notification>();
  world_.coordinator = world_.network.Spawn(options_.node, [this] {
    return world_.system.spawn(CoordinatorBehavior, options_.cluster,
                               world_.gone, /*trace=*/nullptr);
  });
}

void SimulatedProcess::Start(absl::Duration later) {
  coordinator_ = world_.network.SeenFrom(options_.node, world_.coordinator);
  starter_ = world_.network.Spawn(options_.node, [this] {
    return world_.system.spawn(
        [](caf::event_based_actor* self, SimulatedProcess* process) {
          return process->Behavior(self);
        },
        this);
  });
  caf::delayed_anon_send(starter_, absl::ToChronoNanoseconds(later),
                         begin_atom::value);
}

caf::behavior SimulatedProcess::Behavior(caf::event_based_actor* self) {
  self_ = self;
  self->set_down_handler([this](caf::down_msg& down) {
    if (agent_ != nullptr && down.source == agent_) {
      CheckGone();
    } else {
      Say(*outcome_);
      CheckGone();
    }
  });
  return {
      [this](begin_atom) { OnStart(); },
      [this](const Welcome& welcome) { OnWelcome(welcome); },
      [this](const KeyValue& value) { OnKeyValue(value); },
      [this](const SupervisorIs& is) { OnSupervisorIs(is); },
      [this](const Refused& refused) {
        OnRefused(absl::Status(static_cast<absl::StatusCode>(refused.code),
                               refused.message));
      },
      [this](int stage) { OnDeadline(stage); },
      [this](drive_atom) { SetUpRanks(); },
      [this](reported_atom) { OnOutcome(); },
      [this](watch_atom) { Leave(); },
  };
}

void SimulatedProcess::Await(Stage stage, absl::Duration timeout) {
  stage_ = stage;
  self_->delayed_send(self_, ActorTimeout(timeout), static_cast<int>(stage));
}

void SimulatedProcess::OnDeadline(int stage) {
  if (stage != static_cast<int>(stage_)) return;
  Fail(absl::DeadlineExceededError("no answer in time"));
}

void SimulatedProcess::OnStart() {
  const ClusterOptions& cluster = options_.cluster;
  if (decides()) {
    self_->monitor(coordinator_);
    const absl::Status status = Prepare(/*decision=*/nullptr);
    if (!status.ok()) return Fail(status);
    Welcome offer;
    offer.generation = setup_.process->generation;
    offer.plan = pipeline::PlanToJson(*setup_.process->plan);
    offer.resume_path = setup_.process->resume.path;
    offer.folder_mark = setup_.process->folder.mark();
    caf::anon_send(coordinator_, std::move(offer));
  } else {
    agent_ = world_.network.Spawn(options_.node, [&] {
      return world_.system.spawn(
          AgentBehavior, cluster, coordinator_,
          caf::actor_cast<caf::strong_actor_ptr>(starter_),
          /*trace=*/nullptr,
          [this](const absl::StatusOr<JobResult>& result) { OnEnd(result); });
    });
    self_->monitor(agent_);
  }
  Join join;
  join.member.process = cluster.process;
  join.member.ranks = cluster.ranks;
  join.member.host = absl::StrCat("node", options_.node);
  join.member.pid = 100 + options_.node;
  join.nonce = 1000 + options_.node;
  join.agent = caf::actor_cast<caf::strong_actor_ptr>(agent_);
  join.processes = cluster.processes;
  join.version = options_.version;
  join.agreement = cluster.agreement;
  Await(Stage::kJoining, cluster.join_timeout + cluster.liveness_timeout);
  self_->send(coordinator_, join);
}

absl::Status SimulatedProcess::Prepare(const Decision* decision) {
  JobSpec spec = options_.spec;
  spec.train = points_.In(train_);
  spec.checkpoint.files = points_.In(&files_);
  spec.cluster = options_.cluster;
  TROUPE_ASSIGN_OR_RETURN(
      setup_, PrepareJob(spec, /*observer=*/nullptr, &hooks_, decision));
  return absl::OkStatus();
}

void SimulatedProcess::OnWelcome(const Welcome& welcome) {
  const auto nonce = static_cast<std::uint64_t>(1000 + options_.node);
  if (stage_ != Stage::kJoining || welcome.nonce != nonce) return;
  welcome_ = welcome;
  if (!decides()) {
    absl::StatusOr<pipeline::Plan> plan = pipeline::PlanFromJson(welcome.plan);
    if (!plan.ok()) return Fail(plan.status());
    Decision decision;
    decision.plan = std::make_shared<const pipeline::Plan>(*std::move(plan));
    decision.resume_path = welcome.resume_path;
    const absl::Status status = Prepare(&decision);
    if (!status.ok()) return Fail(InThisProcess(status));
  }
  setup_.process->links.number = options_.cluster.process;
  setup_.process->generation = welcome.generation;
  setup_.process->links.roster =
      std::make_shared<const Roster>(welcome.members);
  if (!decides()) {
    const absl::Status status =
        CheckFolder(*setup_.process, welcome.folder_mark, /*warn=*/nullptr);
    if (!status.ok()) return Fail(InThisProcess(status));
  }
  // A key is often requested before it is set.
  Await(Stage::kKeys, options_.cluster.join_timeout);
  for (const Member& member : welcome.members) {
    keys_.insert(KeyOf(member.process));
    self_->send(coordinator_, GetKey{KeyOf(member.process)});
  }
  self_->send(coordinator_, SetKey{KeyOf(options_.cluster.process), "here"});
}

void SimulatedProcess::OnKeyValue(const KeyValue& value) {
  if (stage_ != Stage::kKeys || keys_.erase(value.key) == 0) return;
  if (!keys_.empty()) return;
  stage_ = Stage::kRanks;
  if (options_.slow <= absl::ZeroDuration()) return SetUpRanks();
  self_->delayed_send(self_, ActorTimeout(options_.slow), drive_atom::value);
}

void SimulatedProcess::SetUpRanks() {
  if (stage_ != Stage::kRanks) return;
  const absl::Status status = MakeRanksHere();
  if (!status.ok()) return Fail(InThisProcess(status));
  if (decides()) {
    SpawnSupervisor();
    return;
  }
  Await(Stage::kSupervisor,
        options_.cluster.join_timeout + options_.cluster.liveness_timeout);
  self_->send(coordinator_, GetSupervisor{welcome_.generation});
}

absl::Status SimulatedProcess::MakeRanksHere() {
  if (options_.broken) {
    return absl::ResourceExhaustedError("no memory for its ranks");
  }
  ProcessContext& process = *setup_.process;
  const Roster& roster = *process.links.roster;
  const int number = options_.cluster.process;
  comm::FabricOptions options;
  options.process = number;
  options.process_of = roster.ProcessesOfRanks();
  options.generation = welcome_.generation;
  options.eager_bytes = options_.eager_bytes;
  options.piece_bytes = options_.piece_bytes;
  for (int p = 0; p < roster.processes(); ++p) {
    options.names.push_back(roster.Describe(p));
  }
  options.on_lost = [this](int lost, const absl::Status& why) {
    Failure failure =
        MakeFailure(welcome_.generation, /*rank=*/-1, /*actor=*/"", why);
    failure.process = lost;
    Report(failure);
  };
  TROUPE_ASSIGN_OR_RETURN(
      process.links.fabric,
      world_.links.MakeFabric(options_.node, std::move(options)));
  TROUPE_ASSIGN_OR_RETURN(
      process.ranks,
      MakeRanks(process, roster.FirstRankOf(number),
                roster.FirstRankOf(number + 1),
                [&](comm::FabricGroupOptions group) {
                  group.chunk_bytes = 1;
                  return process.links.fabric->MakeGroup(std::move(group));
                }));
  return absl::OkStatus();
}

absl::Status SimulatedProcess::InThisProcess(const absl::Status& status) const {
  return absl::Status(
      status.code(),
      absl::StrCat("process ", options_.cluster.process, " (node",
                   options_.node, ", pid ", 100 + options_.node,
                   "): ", status.message()));
}

void SimulatedProcess::Report(const Failure& failure) {
  if (decides()) {
    caf::anon_send(coordinator_, failure);
  } else {
    caf::anon_send(agent_, failure);
  }
}

void SimulatedProcess::SpawnSupervisor() {
  stage_ = Stage::kRunning;
  setup_.process->outcome.OnSet(
      [this](const absl::StatusOr<JobResult>& result) {
        caf::anon_send(coordinator_, ToMessage(welcome_.generation, result));
        OnEnd(result);
      });
  supervised_ = world_.network.Spawn(options_.node, [this] {
    return SpawnSupervised(world_.system, setup_.process,
                           std::move(setup_.checkpoint));
  });
  crew_.ranks = supervised_.crew->ranks;
  crew_.checkpointers = supervised_.crew->checkpointers;
  caf::anon_send(coordinator_,
                 Muster{supervised_.crew, supervised_.supervisor});
}

void SimulatedProcess::OnSupervisorIs(const SupervisorIs& is) {
  if (stage_ != Stage::kSupervisor) return;
  stage_ = Stage::kRunning;
  supervisor_ = caf::actor_cast<SupervisorActor>(is.supervisor);
  crew_ = world_.network.Spawn(options_.node, [&] {
    return SpawnRanks(world_.system, setup_.process,
                      caf::actor_cast<SupervisorActor>(is.supervisor),
                      std::move(setup_.checkpoint));
  });
  CrewReady ready;
  ready.generation = welcome_.generation;
  ready.process = options_.cluster.process;
  for (const RankActor& rank : crew_.ranks) {
    ready.ranks.push_back(caf::actor_cast<caf::strong_actor_ptr>(rank));
  }
  ready.checkpointer =
      caf::actor_cast<caf::strong_actor_ptr>(crew_.checkpointers.front());
  caf::anon_send(agent_, ready);
  caf::anon_send(coordinator_, ready);
  if (outcome_) OnOutcome();
}

void SimulatedProcess::OnRefused(const absl::Status& status) {
  if (stage_ >= Stage::kRunning) return;
  if (!decides()) Say(status);  // a refusal carries the job's result
  Fail(status);
}

// Stands for ClusterJob::Tell().
void SimulatedProcess::Fail(const absl::Status& status) {
  if (stage_ >= Stage::kRunning) return;
  stage_ = Stage::kFailed;
  start_ = status;
  if (decides()) {
    caf::anon_send(coordinator_, ToMessage(welcome_.generation, status));
    OnEnd(status);
    return;
  }
  Report(MakeFailure(welcome_.generation, /*rank=*/-1, /*actor=*/"", status));
  self_->delayed_send(self_, ActorTimeout(kFarewellTimeout), watch_atom::value);
  if (outcome_) OnOutcome();
}

void SimulatedProcess::OnEnd(const absl::StatusOr<JobResult>& result) {
  ++verdicts_;
  if (!outcome_) outcome_ = result;
  caf::anon_send(starter_, reported_atom::value);
}

// Stands for the return of Job::Wait(); in process 0 it waits until all others
// have received the outcome.
void SimulatedProcess::OnOutcome() {
  if (stage_ < Stage::kRunning || left_) return;
  if (!decides()) Say(Verdict());
  self_->delayed_send(self_,
                      ActorTimeout(decides() ? kFarewellTimeout : linger_),
                      watch_atom::value);
}

// Stands for ClusterJob::VerdictOr().
absl::StatusOr<JobResult> SimulatedProcess::Verdict() const {
  if (stage_ != Stage::kFailed) return *outcome_;
  return outcome_ && !outcome_->ok() ? outcome_->status() : start_;
}

void SimulatedProcess::Say(const absl::StatusOr<JobResult>& verdict) {
  if (!verdict_) verdict_ = verdict;
}

void SimulatedProcess::Leave() {
  const caf::exit_msg end = {caf::actor_addr(),
                             caf::exit_reason::user_shutdown};
  if (decides()) {
    hurried_ = true;
    caf::anon_send(caf::actor_cast<caf::actor>(coordinator_), end);
    return;
  }
  Say(Verdict());
  caf::anon_send(caf::actor_cast<caf::actor>(agent_), end);
}

void SimulatedProcess::CheckGone() {
  if (left_) return;
  left_ = true;
  LetGoOfLinks();
  world_.network.Leave(options_.node);
  self_->quit();
}

// Part of ClusterJob::Leave(). The last actor to end closes the links.
void SimulatedProcess::LetGoOfLinks() {
  const std::shared_ptr<ProcessContext> process = std::move(setup_.process);
  if (process != nullptr && process->links.fabric != nullptr) {
    RefuseTransfers(*process);
  }
}

void SimulatedProcess::RequestStop() {
  if (agent_ != nullptr) {
    caf::anon_send(agent_, halt_atom::value);
  } else {
    caf::anon_send(coordinator_, halt_atom::value);
  }
}

void SimulatedProcess::SendStale() {
  if (agent_ == nullptr) return;
  const int number = options_.cluster.process;
  CrewReady crew;
  crew.generation = kStaleGeneration;
  crew.process = number;
  crew.checkpointer = caf::actor_cast<caf::strong_actor_ptr>(starter_);
  crew.ranks.assign(options_.cluster.ranks, crew.checkpointer);
  caf::anon_send(coordinator_, crew);
  caf::anon_send(coordinator_, Farewell{kStaleGeneration, number});
  const absl::Status status = absl::InternalError("of an earlier attempt");
  caf::anon_send(coordinator_, MakeFailure(kStaleGeneration, /*rank=*/-1,
                                           /*actor=*/"", status));
  caf::anon_send(agent_, ToMessage(kStaleGeneration, status));
  // The process may have ended its actors already.
  if (supervisor_ != nullptr && setup_.process != nullptr) {
    RankWaits waits;
    waits.generation = kStaleGeneration;
    waits.rank = setup_.process->links.first_rank();
    waits.doing = "of an earlier attempt";
    caf::anon_send(supervisor_, waits);
  }
  Welcome welcome;
  welcome.generation = kStaleGeneration;
  caf::anon_send(starter_, welcome);
}

void SimulatedProcess::TearDown() {
  EndRank end;
  end.generation = welcome_.generation;
  end.code = static_cast<int>(absl::StatusCode::kCancelled);
  for (const RankActor& rank : crew_.ranks) {
    if (rank != nullptr) caf::anon_send(rank, end);
  }
  const auto kill = [](const auto& actor) {
    if (actor == nullptr) return;
    caf::anon_send_exit(actor, caf::exit_reason::kill);
  };
  for (const CheckpointerActor& each : crew_.checkpointers) kill(each);
  if (supervised_.crew != nullptr) kill(supervised_.crew->reporter);
  kill(supervised_.supervisor);
  kill(starter_);
  kill(agent_);
  if (decides()) kill(world_.coordinator);
}

}  // namespace troupe::actors

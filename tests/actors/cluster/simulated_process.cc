#include "tests/actors/cluster/simulated_process.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/caf/actor_timeout.h"
#include "actors/protocol/strand_guard.h"
#include "pipeline/plan_json.h"

namespace troupe::actors {
namespace {

// The same as in cluster_job.cc.
constexpr absl::Duration kFarewellTimeout = absl::Seconds(2);
// Generation of another attempt of the job.
constexpr std::int32_t kStaleGeneration = 7;

std::string KeyOf(int process) { return absl::StrCat("data/", process); }

}  // namespace

SimulatedProcess::SimulatedProcess(SimulatedWorld& world, NodeOptions options)
    : world_(world),
      options_(std::move(options)),
      job_(world.scheduler, options_,
           [this] { return world_.network.is_gone(options_.node); }) {
  if (world_.scheduler.draws().Below(3) == 0) linger_ = absl::Seconds(5);
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
    const bool is_agent = agent_ != nullptr && down.source == agent_;
    if (!is_agent) result_.Return();
    CheckGone();
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
    const absl::Status status = job_.Prepare(/*decision=*/nullptr);
    if (!status.ok()) return Fail(status);
    Welcome offer;
    offer.generation = job_.process()->generation;
    offer.plan = pipeline::PlanToJson(*job_.process()->plan);
    offer.resume_path = job_.process()->resume.path;
    offer.folder_mark = job_.process()->folder.mark();
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
    const absl::Status status = job_.Prepare(&decision);
    if (!status.ok()) return Fail(InThisProcess(status));
  }
  job_.Join(welcome);
  if (!decides()) {
    const absl::Status status =
        CheckFolder(*job_.process(), welcome.folder_mark, /*warn=*/nullptr);
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
  const absl::Status status =
      job_.MakeRanks(world_.links, [this](int lost, const absl::Status& why) {
        Failure failure =
            MakeFailure(welcome_.generation, /*rank=*/-1, /*actor=*/"", why);
        failure.process = lost;
        Report(failure);
      });
  if (!status.ok()) return Fail(InThisProcess(status));
  if (decides()) {
    SpawnSupervisor();
    return;
  }
  Await(Stage::kSupervisor,
        options_.cluster.join_timeout + options_.cluster.liveness_timeout);
  self_->send(coordinator_, GetSupervisor{welcome_.generation});
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
  job_.process()->outcome.OnSet(
      [this](const absl::StatusOr<JobResult>& result) {
        caf::anon_send(coordinator_, ToMessage(welcome_.generation, result));
        OnEnd(result);
      });
  caf::anon_send(coordinator_, world_.network.Spawn(options_.node, [this] {
    return actors_.SpawnSupervisor(world_.system, job_);
  }));
}

void SimulatedProcess::OnSupervisorIs(const SupervisorIs& is) {
  if (stage_ != Stage::kSupervisor) return;
  stage_ = Stage::kRunning;
  const CrewReady ready = world_.network.Spawn(options_.node, [&] {
    return actors_.SpawnRanks(world_.system, job_,
                              caf::actor_cast<SupervisorActor>(is.supervisor));
  });
  caf::anon_send(agent_, ready);
  caf::anon_send(coordinator_, ready);
  if (result_.has_outcome()) OnOutcome();
}

void SimulatedProcess::OnRefused(const absl::Status& status) {
  if (stage_ >= Stage::kRunning) return;
  if (!decides()) result_.Return(status);  // a refusal carries the job's result
  Fail(status);
}

// Stands for ClusterJob::Tell().
void SimulatedProcess::Fail(const absl::Status& status) {
  if (stage_ >= Stage::kRunning) return;
  stage_ = Stage::kFailed;
  result_.FailStart(status);
  if (decides()) {
    caf::anon_send(coordinator_, ToMessage(welcome_.generation, status));
    OnEnd(status);
    return;
  }
  Report(MakeFailure(welcome_.generation, /*rank=*/-1, /*actor=*/"", status));
  self_->delayed_send(self_, ActorTimeout(kFarewellTimeout), watch_atom::value);
  if (result_.has_outcome()) OnOutcome();
}

void SimulatedProcess::OnEnd(const absl::StatusOr<JobResult>& result) {
  result_.AddOutcome(result);
  caf::anon_send(starter_, reported_atom::value);
}

// Stands for the return of Job::Wait(); in process 0 it waits until all others
// have received the outcome.
void SimulatedProcess::OnOutcome() {
  if (stage_ < Stage::kRunning || left_) return;
  if (!decides()) result_.Return();
  self_->delayed_send(self_,
                      ActorTimeout(decides() ? kFarewellTimeout : linger_),
                      watch_atom::value);
}

void SimulatedProcess::Leave() {
  const caf::exit_msg end = {caf::actor_addr(),
                             caf::exit_reason::user_shutdown};
  if (decides()) {
    hurried_ = true;
    caf::anon_send(caf::actor_cast<caf::actor>(coordinator_), end);
    return;
  }
  result_.Return();
  caf::anon_send(caf::actor_cast<caf::actor>(agent_), end);
}

void SimulatedProcess::CheckGone() {
  if (left_) return;
  left_ = true;
  job_.LetGoOfLinks();
  world_.network.Leave(options_.node);
  self_->quit();
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
  if (actors_.supervisor() != nullptr && job_.process() != nullptr) {
    RankWaits waits;
    waits.generation = kStaleGeneration;
    waits.rank = job_.process()->links.first_rank();
    waits.doing = "of an earlier attempt";
    caf::anon_send(actors_.supervisor(), waits);
  }
  Welcome welcome;
  welcome.generation = kStaleGeneration;
  caf::anon_send(starter_, welcome);
}

void SimulatedProcess::TearDown() {
  actors_.End(welcome_.generation);
  Kill(starter_);
  Kill(agent_);
  if (decides()) Kill(world_.coordinator);
}

}  // namespace troupe::actors

// A handler of each kind of actor throws: on real threads, the job ends at once
// with a status that names the actor.

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "actors/caf/strand_scheduler.h"
#include "actors/caf/thread_supply.h"
#include "actors/job.h"
#include "actors/setup/job_setup.h"
#include "actors/setup/test_hooks.h"
#include "actors/supervision/spawn_crew.h"
#include "actors/tracing/trace.h"
#include "comm/local/local_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actors/test_job.h"
#include "tests/comm/wrapped_communicator.h"

namespace troupe::actors {
namespace {

// Ten times the promise of one second, for a loaded machine.
constexpr absl::Duration kDeadline = absl::Seconds(10);

// An exception that is thrown once, and the time when it was.
class Bomb {
 public:
  void Throw() {
    {
      absl::MutexLock lock(&mutex_);
      if (thrown_at_) return;
      thrown_at_ = absl::Now();
    }
    throw std::runtime_error("planted");
  }
  std::optional<absl::Time> thrown_at() const {
    absl::MutexLock lock(&mutex_);
    return thrown_at_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::optional<absl::Time> thrown_at_ ABSL_GUARDED_BY(mutex_);
};

// Throws where an actor begins something that a trace shows.
class ThrowingTrace : public TraceSink {
 public:
  ThrowingTrace(Bomb& bomb, TraceTrack track, TraceKind kind)
      : bomb_(bomb), track_(track), kind_(kind) {}
  bool Wants(std::int64_t) const override { return true; }
  void Record(const TraceEvent& event) override {
    if (event.track == track_ && event.kind == kind_ &&
        event.phase == TracePhase::kBegin && event.step > 0) {
      bomb_.Throw();
    }
  }

 private:
  Bomb& bomb_;
  const TraceTrack track_;
  const TraceKind kind_;
};

class ThrowingObserver : public JobObserver {
 public:
  explicit ThrowingObserver(Bomb& bomb) : bomb_(bomb) {}
  void OnSteps(absl::Span<const StepReport>) override { bomb_.Throw(); }

 private:
  Bomb& bomb_;
};

// Throws at a rank's so many-th start of a collective, or when it is driven.
class ThrowingCommunicator : public comm::WrappedCommunicator {
 public:
  ThrowingCommunicator(std::unique_ptr<comm::Communicator> inner, Bomb& bomb,
                       bool when_driven)
      : WrappedCommunicator(std::move(inner)),
        bomb_(bomb),
        when_driven_(when_driven) {}
  absl::StatusOr<comm::Event> Start(const comm::Collective& collective,
                                    comm::Event after) override {
    ++starts_;
    if (!when_driven_ && starts_ > kStarts) bomb_.Throw();
    return inner().Start(collective, std::move(after));
  }
  bool Progress() override {
    if (when_driven_ && starts_ > kStarts) bomb_.Throw();
    return inner().Progress();
  }

 private:
  static constexpr int kStarts = 9;

  Bomb& bomb_;
  const bool when_driven_;
  int starts_ = 0;
};

enum class Place { kTrace, kObserver, kStart, kDrive, kStep, kBoundary };

// Where a handler throws, and how the job's status then begins.
struct Case {
  const char* name;
  const char* status;  // a pattern
  Place place;
  TraceTrack track = TraceTrack::kCompute;
  TraceKind kind = TraceKind::kAction;
};
void PrintTo(const Case& plan, std::ostream* out) { *out << plan.name; }

// As Job does it, with hooks.
absl::Status RunWithHooks(const JobSpec& spec, JobObserver* observer,
                          const TestHooks& hooks) {
  const ProcessContextPtr process =
      SetUpJob(spec, observer, &hooks).value().process;
  const auto threads =
      StartActorThreads(JobThreads(static_cast<int>(process->ranks.size())))
          .value();
  caf::actor_system_config config;
  AddMessageTypes(config);
  RunOnThreads(*threads, config);
  caf::actor_system system(config);
  SpawnCrew(system, process, /*checkpoint=*/nullptr);
  return process->outcome.Wait().status();
}

class FailingHandlersTest
    : public testing::TestWithParam<std::tuple<Case, pipeline::Mesh>> {};

TEST_P(FailingHandlersTest, EndTheJobAtOnce) {
  const auto& [plan, mesh] = GetParam();
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/1'000'000);
  spec.plan.mesh = mesh;
  if (mesh.pp() > 1) spec.plan.cuts = {6};
  spec.plan.inline_bytes = 0;  // collectives are the comm strands' work
  spec.eval_every = 20;
  spec.checkpoint.dir = FreshFolder(absl::StrCat(plan.name, mesh.pp()));
  spec.checkpoint.every = 30;

  Bomb bomb;
  ThrowingTrace trace(bomb, plan.track, plan.kind);
  if (plan.place == Place::kTrace) spec.trace = &trace;
  ThrowingObserver observer(bomb);
  TestHooks hooks;
  if (plan.place == Place::kBoundary) {
    hooks.at_boundary = [&](std::int64_t) { bomb.Throw(); };
  }
  if (plan.place == Place::kStep) {
    hooks.after_step = [&](int, std::int64_t step, const nn::ParameterArena&) {
      if (step == 7) bomb.Throw();
    };
  }
  if (plan.place == Place::kStart || plan.place == Place::kDrive) {
    const bool drive = plan.place == Place::kDrive;
    hooks.make_group = [&, drive](const comm::LocalGroupOptions& options) {
      comm::Group group = comm::MakeLocalGroup(options);
      for (auto& rank : group) {
        rank = std::make_unique<ThrowingCommunicator>(std::move(rank), bomb,
                                                      drive);
      }
      return group;
    };
  }
  const absl::Status status = RunWithHooks(
      spec, plan.place == Place::kObserver ? &observer : nullptr, hooks);
  const absl::Time end = absl::Now();

  ASSERT_TRUE(bomb.thrown_at().has_value()) << status;
  EXPECT_LT(end - *bomb.thrown_at(), kDeadline);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              testing::MatchesRegex(plan.status));
}

INSTANTIATE_TEST_SUITE_P(
    EveryActor, FailingHandlersTest,
    testing::Combine(
        testing::Values(
            Case{"supervisor", "supervisor: planted", Place::kBoundary},
            Case{"rank_evaluates", "rank [01], rank: planted", Place::kTrace,
                 TraceTrack::kRank, TraceKind::kEvaluation},
            Case{"rank_saves", "rank [01], rank: planted", Place::kTrace,
                 TraceTrack::kRank, TraceKind::kCheckpoint},
            Case{"loader", "rank [01], loader: planted", Place::kTrace,
                 TraceTrack::kLoader, TraceKind::kLoad},
            Case{"compute_in_an_action", "rank [01], compute: planted",
                 Place::kTrace, TraceTrack::kCompute, TraceKind::kAction},
            Case{"compute_after_a_step", "rank [01], compute: planted",
                 Place::kStep},
            Case{"comm_starts", "rank [01], comm: planted", Place::kStart},
            Case{"comm_drives", "rank [01], comm: planted", Place::kDrive},
            Case{"checkpointer", "checkpointer: planted", Place::kTrace,
                 TraceTrack::kCheckpointer, TraceKind::kCheckpoint},
            Case{"reporter", "observer: planted", Place::kObserver}),
        testing::Values(pipeline::Mesh(/*dp=*/2),
                        pipeline::Mesh(/*dp=*/1, /*pp=*/2))),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param).name, "_pp",
                          std::get<1>(info.param).pp());
    });

}  // namespace
}  // namespace troupe::actors

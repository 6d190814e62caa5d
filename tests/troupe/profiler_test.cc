#include "troupe/profiler.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "base/status_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actors/tracing/trace_importer.h"
#include "tests/base/fresh_path.h"
#include "tests/troupe/ranks.h"
#include "troupe/profile/op_recorder.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace {

// Numbers of this thread's calls so far.
thread_local std::int64_t allocations = 0, clock_reads = 0;

}  // namespace

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

// The standard library's clocks call it.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  ++clock_reads;
  return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
}

namespace troupe {
namespace {

using actors::ImportedSlice;
using actors::ImportedTrace;
using actors::ImportTrace;
using testing::ElementsAre;
using testing::HasSubstr;

struct Profiled : nn::Net {
  nn::Linear& first = Add<nn::Linear>("first", 3, 5);
  nn::Linear& second = Add<nn::Linear>("second", 5, 2);
  Var Forward(Var x) override { return second(first(x).Relu()); }
};

ProfilerOptions Cycles(int wait, int warmup, int active, int repeat = 0) {
  ProfilerOptions options;
  options.wait = wait;
  options.warmup = warmup;
  options.active = active;
  options.repeat = repeat;
  return options;
}

// Trains `model` for a step on 4 samples.
void TrainStep(Rank& rank, const Trainable& model, Sgd& sgd) {
  sgd.ZeroGrad();
  nn::MeanSquaredError(model(rank.Randn({4, 3})), rank.Zeros({4, 2}))
      .Backward();
  sgd.Step();
}

// Runs `program` on one rank.
void OnOneRank(const Program& program) {
  const absl::Status status = Spawn(program, Ranks(1));
  EXPECT_TRUE(status.ok()) << status;
}

std::string ReadFile(const std::string& path) {
  base::PosixFileSystem files;
  return files.ReadToEnd(path, /*bytes_max=*/1 << 24).value_or("");
}

std::int64_t CallsOf(const OpProfile& profile, const std::string& name) {
  const std::vector<OperatorTime> all = profile.KeyAverages();
  const auto op =
      std::find_if(all.begin(), all.end(),
                   [&](const OperatorTime& each) { return each.name == name; });
  return op == all.end() ? 0 : op->calls;
}

// The phases are those of torch.profiler.schedule(wait=1, warmup=1, active=2,
// repeat=2, skip_first=1), steps 0 to 9.
TEST(ProfilerTest, FollowsTheScheduleOfPyTorch) {
  OnOneRank([](Rank& rank) {
    ProfilerOptions options = Cycles(1, 1, 2, 2);
    options.skip_first = 1;
    std::vector<int> ended;
    std::string phases;
    options.on_trace_ready = [&](Profiler& profiler) {
      ended.push_back(static_cast<int>(phases.size()));
      EXPECT_EQ(profiler.profile().steps, 2);
    };
    Profiler profiler(rank, options);
    for (int i = 0; i < 11; ++i) {
      phases += profiler.recording()        ? 'A'
                : rank.recorder().records() ? 'W'
                                            : '-';
      profiler.Step();
    }
    profiler.Stop();
    EXPECT_EQ(phases, "--WAA-WAA--");
    EXPECT_THAT(ended, ElementsAre(5, 9));
    EXPECT_EQ(profiler.cycles(), 2);
  });
}

TEST(ProfilerTest, ACycleHasTheOperatorsOfItsActiveStepsAlone) {
  OnOneRank([](Rank& rank) {
    auto model = rank.Make<Profiled>();
    Sgd sgd(model, {/*lr=*/0.1});
    Profiler profiler(rank, Cycles(1, 1, 3, 1));
    for (int i = 0; i < 8; ++i) {
      TrainStep(rank, model, sgd);
      profiler.Step();
    }
    // Two layers in each of three steps.
    EXPECT_EQ(CallsOf(profiler.profile(), "LinearForward"), 6);
    EXPECT_EQ(CallsOf(profiler.profile(), "LinearBackwardWeight"), 6);
    EXPECT_EQ(CallsOf(profiler.profile(), "ReluForward"), 3);
  });
}

TEST(ProfilerTest, OperatorsHaveTheModuleOfTheirForwardAndTheirShapes) {
  OnOneRank([](Rank& rank) {
    auto model = rank.Make<Profiled>();
    Sgd sgd(model, {/*lr=*/0.1});
    Profiler profiler(rank);
    TrainStep(rank, model, sgd);
    profiler.Stop();
    std::map<std::string, std::string> shapes;
    TableOptions options;
    options.by_module = options.by_shapes = true;
    for (const OperatorTime& op : profiler.KeyAverages(options)) {
      shapes[absl::StrCat(op.name, " ", op.module)] = op.shapes;
    }
    EXPECT_EQ(shapes["LinearForward first"],
              "f32[4, 3] f32[5, 3] f32[5] f32[4, 5]");
    EXPECT_EQ(shapes["LinearForward second"],
              "f32[4, 5] f32[2, 5] f32[2] f32[4, 2]");
    EXPECT_EQ(shapes["LinearBackwardWeight first"],
              "f32[4, 3] f32[4, 5] f32[5, 3] f32[5]");
    EXPECT_EQ(shapes["LinearBackwardWeight second"],
              "f32[4, 5] f32[4, 2] f32[2, 5] f32[2]");
    EXPECT_EQ(shapes.count("LinearBackwardInput second"), 1u);
    EXPECT_EQ(shapes.count("SgdUpdate "), 1u) << profiler.Table(options);
  });
}

TEST(ProfilerTest, CallsOfGroupsAreOperators) {
  const auto program = [](Rank& rank) {
    Var x = rank.Ones({4, 3});
    Profiler profiler(rank);
    rank.world().AllReduce(x);
    Work work = rank.world().StartBroadcast(x, /*root=*/0);
    work.Wait();
    if (rank.number() == 0) Send(x, /*to=*/1);
    if (rank.number() == 1) Recv(x, /*from=*/0);
    // A call that fails has ended, too, with those within it.
    EXPECT_THROW(rank.world().AllToAll(rank.Ones({3, 1})), base::StatusError);
    EXPECT_THROW(rank.world().Send(x, /*to=*/7), base::StatusError);
    x.Relu();
    profiler.Stop();
    std::map<std::string, OperatorTime> ops;
    TableOptions options;
    options.by_shapes = true;
    for (const OperatorTime& op : profiler.KeyAverages(options)) {
      ops[op.name] = op;
    }
    EXPECT_EQ(ops["AllReduce"].shapes, "f32[4, 3]");
    EXPECT_EQ(ops["StartBroadcast"].shapes, "f32[4, 3]");
    EXPECT_EQ(ops["Send"].calls, rank.number() == 0 ? 2 : 1);
    EXPECT_EQ(ops["Recv"].calls, rank.number() == 0 ? 0 : 1);
    EXPECT_EQ(ops["Wait"].calls, 2);  // for the broadcast and the message
    EXPECT_EQ(ops["ReluForward"].calls, 1);
    // A message's wait is an operator within the call.
    const OperatorTime& message = ops[rank.number() == 0 ? "Send" : "Recv"];
    EXPECT_LT(message.self_ms, message.total_ms);
    EXPECT_THAT(profiler.profile().ToJson(), HasSubstr("AllReduce"));
  };
  const absl::Status status = Spawn(program, Ranks(2));
  EXPECT_TRUE(status.ok()) << status;
}

// The table's times are the sums of those in the timeline.
TEST(ProfilerTest, TheTableAddsUpTheTimeline) {
  const std::string folder = base::FreshPath();
  OnOneRank([&](Rank& rank) {
    auto model = rank.Make<Profiled>();
    Sgd sgd(model, {/*lr=*/0.1});
    Profiler profiler(rank, Cycles(0, 1, 2), folder);
    for (int i = 0; i < 6; ++i) {
      {
        RecordFunction part(rank, "train");
        TrainStep(rank, model, sgd);
      }
      profiler.Step();
    }
    const ImportedTrace trace =
        ImportTrace(ReadFile(absl::StrCat(folder, "/rank0_cycle2.json")));
    EXPECT_EQ(trace.problems, "");
    std::map<std::string, double> ms;
    std::map<std::string, int> calls;
    for (const ImportedSlice& slice : trace.slices) {
      ms[slice.where] += (slice.end - slice.begin) / 1000;
      ++calls[slice.where];
    }
    double all = 0;
    for (const OperatorTime& op : profiler.KeyAverages()) {
      const std::string where = absl::StrCat("0/compute/", op.name);
      EXPECT_EQ(calls[where], op.calls) << where;
      EXPECT_NEAR(ms[where], op.total_ms, 0.01 * op.total_ms) << where;
      all += op.self_ms;
    }
    EXPECT_EQ(calls["0/compute/train"], 2);
    EXPECT_EQ(calls["0/compute/ProfilerStep#4"], 1);
    EXPECT_EQ(calls["0/compute/ProfilerStep#5"], 1);
    EXPECT_LT(all, ms["0/compute/train"]);
    EXPECT_EQ(trace.counters.count({0, "memory"}), 1u);
    EXPECT_EQ(profiler.cycles(), 2);
  });
  base::PosixFileSystem files;
  EXPECT_THAT(*files.List(folder),
              ElementsAre("rank0_cycle1.json", "rank0_cycle2.json"));
}

TEST(ProfilerTest, TheTimelineShowsReductionsBesideTheBackward) {
  const std::string folder = base::FreshPath();
  const Program program = [&](Rank& rank) {
    auto model = rank.Make<Profiled>();
    DDPOptions options;
    options.bucket_cap_mb_list = {1e-6};  // a bucket for each parameter
    DDP ddp(model, options);
    Sgd sgd(ddp, {/*lr=*/0.1});
    Profiler profiler(rank, Cycles(1, 0, 1, 1), folder);
    for (int i = 0; i < 3; ++i) {
      TrainStep(rank, ddp, sgd);
      profiler.Step();
    }
  };
  ASSERT_TRUE(Spawn(program, Ranks(2)).ok());
  for (const std::string rank : {"0", "1"}) {
    const ImportedTrace trace = ImportTrace(
        ReadFile(absl::StrCat(folder, "/rank", rank, "_cycle1.json")));
    EXPECT_EQ(trace.problems, "");
    EXPECT_EQ(trace.CountSlices(absl::StrCat(rank, "/compute/B0")), 1);
    int reductions = 0;
    for (const ImportedSlice& slice : trace.slices) {
      if (absl::StrContains(slice.where, "/comm")) ++reductions;
    }
    EXPECT_GE(reductions, 4);
    EXPECT_FALSE(trace.arrows.empty());
  }
}

TEST(ProfilerTest, ChangesNoBitAndRunsUnderSeeds) {
  std::vector<float> values[2];
  for (const bool profiled : {false, true}) {
    const Program program = [&](Rank& rank) {
      auto model = rank.Make<Profiled>();
      DDP ddp(model);
      Sgd sgd(ddp, {/*lr=*/0.1});
      std::optional<Profiler> profiler;
      if (profiled) profiler.emplace(rank, Cycles(0, 1, 1));
      for (int i = 0; i < 4; ++i) {
        TrainStep(rank, ddp, sgd);
        if (profiled) profiler->Step();
      }
      if (rank.number() != 0) return;
      const auto weight = model->first.weight().value.span<float>();
      values[profiled].assign(weight.begin(), weight.end());
    };
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const SimulatedRun run = Simulate(program, Ranks(2), {seed});
      ASSERT_TRUE(run.status.ok()) << run.status << " seed " << seed;
    }
  }
  EXPECT_EQ(values[0], values[1]);
}

// The least that steps need of what costs time.
struct StepCost {
  std::int64_t allocations = std::numeric_limits<std::int64_t>::max();
  std::int64_t clock_reads = std::numeric_limits<std::int64_t>::max();
};

StepCost CostOfSteps(const std::function<void()>& step) {
  StepCost least;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t allocated = allocations, read = clock_reads;
    step();
    least.allocations = std::min(least.allocations, allocations - allocated);
    least.clock_reads = std::min(least.clock_reads, clock_reads - read);
  }
  return least;
}

// A step outside of a window allocates and reads clocks as one without a
// Profiler; one within a window does more of both.
TEST(ProfilerTest, CostsNothingOutsideOfAWindow) {
  OnOneRank([](Rank& rank) {
    auto model = rank.Make<Profiled>();
    Sgd sgd(model, {/*lr=*/0.1});
    const auto cost = [&](Profiler* profiler) {
      return CostOfSteps([&] {
        const RecordFunction part(rank, "a part of a step");
        TrainStep(rank, model, sgd);
        if (profiler != nullptr) profiler->Step();
      });
    };
    const StepCost without = cost(nullptr);
    EXPECT_GT(without.allocations, 0);
    {
      Profiler waits(rank, Cycles(/*wait=*/1000, 0, 1));
      const StepCost outside = cost(&waits);
      EXPECT_EQ(outside.allocations, without.allocations);
      EXPECT_EQ(outside.clock_reads, without.clock_reads);
    }
    {
      Profiler ended(rank, Cycles(0, 0, 1, /*repeat=*/1));
      TrainStep(rank, model, sgd);
      ended.Step();
      EXPECT_EQ(ended.cycles(), 1);
      const StepCost after = cost(&ended);
      EXPECT_EQ(after.allocations, without.allocations);
      EXPECT_EQ(after.clock_reads, without.clock_reads);
    }
    Profiler records(rank, Cycles(0, 0, /*active=*/1000));
    const StepCost within = cost(&records);
    EXPECT_GT(within.allocations, without.allocations);
    EXPECT_GT(within.clock_reads, without.clock_reads);
  });
}

TEST(ProfilerTest, CountsEventsThatItHasNoRoomFor) {
  OnOneRank([](Rank& rank) {
    ProfilerOptions options;
    options.events_max = 3;
    Profiler profiler(rank, options);
    const Var x = rank.Zeros({2});
    for (int i = 0; i < 5; ++i) x.Relu();
    profiler.Stop();
    EXPECT_EQ(profiler.profile().ops.size(), 3u);
    EXPECT_GE(profiler.profile().dropped, 2);
    EXPECT_THAT(profiler.profile().ToJson(), HasSubstr("dropped_events"));
  });
}

TEST(ProfilerTest, TableOfKnownTimes) {
  OpProfile profile;
  profile.rank = 2;
  profile.steps = 2;
  profile.micros = 10000;
  profile.modules = {"", "fc1"};
  profile.shapes = {"", "f32[2]"};
  const auto add = [&](const char* name, double total, double self,
                       std::int64_t grown) {
    OpEvent& op = profile.ops.emplace_back();
    op.name = name;
    op.module = op.shapes = 1;
    op.total = total;
    op.self = self;
    op.grown = grown;
  };
  add("Fill", 500, 500, 0);
  add("Copy", 250, 250, 0);
  add("LinearForward", 4000, 3500, 2048);
  add("LinearForward", 2000, 2000, -512);
  TableOptions options;
  options.row_limit = 1;
  options.by_module = options.by_shapes = true;
  EXPECT_EQ(
      profile.Table(options),
      "rank 2: 2 steps in 10.0 ms, 62.5% of it in operators\n"
      "\n"
      "operator                      calls    self ms    self   total ms     "
      "avg us     memory  module, shapes\n"
      "LinearForward                     2      5.500   55.0%      6.000     "
      "3000.0    1.5 KiB  fc1  f32[2]\n"
      "2 more                            2      0.750    7.5%\n"
      "outside operators                        3.750   37.5%\n");
  options.sort_by = SortBy::kCalls;
  EXPECT_EQ(profile.KeyAverages(options).front().name, "LinearForward");
  options.sort_by = SortBy::kMemory;
  EXPECT_EQ(profile.KeyAverages(options).back().grown, 0);
}

TEST(ProfilerTest, RefusesWhatCannotBeMeant) {
  OnOneRank([](Rank& rank) {
    const auto error = [&](const ProfilerOptions& options) {
      return std::string(base::Try([&] { Profiler(rank, options); }).message());
    };
    EXPECT_EQ(error(Cycles(-1, 0, 1)),
              "ProfilerOptions.wait is -1; give a number of steps or cycles, "
              "at least 0");
    EXPECT_EQ(
        error(Cycles(0, 2, 0)),
        "ProfilerOptions.warmup is 2, but active is 0, by which all steps "
        "are recorded; set active to the number of steps of a cycle");
    Profiler profiler(rank, Cycles(1, 0, 1));
    EXPECT_EQ(error({}), "rank 0 has a Profiler already; end that one first");
    EXPECT_THAT(base::Try([&] { profiler.Table(); }).message(),
                HasSubstr("no cycle of the Profiler has ended"));
    profiler.Stop();
    EXPECT_EQ(error({}), "");
  });
}

// A folder that cannot be made ends the program with its path; an exception
// that leaves the block of the profiler stays the error.
TEST(ProfilerTest, ErrorsOfFilesComeOutAtTheEnd) {
  const absl::Status status =
      Spawn([](Rank& rank) { Profiler profiler(rank, {}, "/proc/no_folder"); },
            Ranks(1));
  EXPECT_THAT(status.message(), HasSubstr("/proc/no_folder"));
  const absl::Status thrown = Spawn(
      [](Rank& rank) {
        Profiler profiler(rank, {}, "/proc/no_folder");
        throw base::StatusError(absl::DataLossError("the cause"));
      },
      Ranks(1));
  EXPECT_THAT(thrown.message(), HasSubstr("the cause"));
}

}  // namespace
}  // namespace troupe

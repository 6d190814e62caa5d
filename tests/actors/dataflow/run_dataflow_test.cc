// Dataflows in threads, in several processes and under the seeded scheduler:
// every stage gets the same tensors in the same order, wherever it is; no
// channel ever holds more than its capacity; every run ends cleanly.

#include "actors/dataflow/run_dataflow.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "actors/dataflow/simulate_dataflow.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actors/dataflow/small_flow.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

using testing::HasSubstr;
using Reports = std::vector<absl::StatusOr<DataflowReport>>;

std::vector<std::int64_t> Squares(int count) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i * i);
  return values;
}
std::vector<std::int64_t> SixTimes(int count) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(6 * i);
  return values;
}

// Expects that each channel has carried all tensors, and never more at a time
// than its capacity.
void ExpectKept(const DataflowReport& report, const Dataflow& flow, int count) {
  for (const ChannelReport& channel : report.channels) {
    EXPECT_EQ(channel.tensors, count) << channel.name;
    for (const ChannelSpec& spec : flow.channels()) {
      if (spec.name != channel.name) continue;
      EXPECT_LE(channel.in_flight_max, spec.capacity) << channel.name;
    }
  }
}

// ---- threads --------------------------------------------------------------

TEST(RunDataflow, EveryCapacityGivesTheSameInOrder) {
  for (const int capacity : {1, 2, 64}) {
    Numbers got;
    const Dataflow flow = Chain({/*count=*/500, capacity}, &got);
    const auto report = RunDataflow(flow);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(got.values, Squares(500));
    EXPECT_TRUE(got.ended);
    ASSERT_EQ(report->channels.size(), 2u);
    ExpectKept(*report, flow, 500);
  }
}

TEST(RunDataflow, ResultsComeBackToTheStageThatTheyLeft) {
  Numbers got;
  const Dataflow flow = Diamond({/*count=*/200, /*capacity=*/1}, &got);
  const auto report = RunDataflow(flow);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(got.values, SixTimes(200));
  ExpectKept(*report, flow, 200);
}

TEST(RunDataflow, ASourceWithoutTensorsEndsEverything) {
  Numbers got;
  ASSERT_TRUE(RunDataflow(Chain({/*count=*/0}, &got)).ok());
  EXPECT_TRUE(got.values.empty());
  EXPECT_TRUE(got.ended);
}

// Two consecutive stages run their handlers at the same time.
TEST(RunDataflow, StagesWorkAtTheSameTime) {
  absl::Notification first_again, second_began;
  Dataflow flow;
  const Channel x = flow.AddChannel("x");
  int given = 0;
  flow.AddStage("first").Source(
      x, [&]() -> absl::StatusOr<std::optional<nn::Tensor>> {
        if (given == 2) return std::nullopt;
        // The next stage is in a handler call that waits for this one.
        if (given == 1) second_began.WaitForNotification();
        if (++given == 2) first_again.Notify();
        return NumberTensor(given);
      });
  flow.AddStage("second").On(x, [&](const nn::Tensor& tensor) -> absl::Status {
    if (NumberIn(tensor) == 1) {
      second_began.Notify();
      first_again.WaitForNotification();
    }
    return absl::OkStatus();
  });
  EXPECT_EQ(RunDataflow(flow).status(), absl::OkStatus());
}

TEST(RunDataflow, AHandlerThatThrowsEndsTheRun) {
  Numbers got;
  SmallFlow options;
  options.throws_at = 7;
  EXPECT_EQ(RunDataflow(Chain(options, &got)).status(),
            absl::InternalError("stage square, numbers, number 7: too large"));
  EXPECT_FALSE(got.ended);
  EXPECT_LE(got.values.size(), 7u);
}

TEST(RunDataflow, WhoStandsStillIsNamed) {
  Dataflow flow;
  const Channel x = flow.AddChannel("x", /*capacity=*/1);
  flow.AddStage("source").Source(
      x, []() -> absl::StatusOr<std::optional<nn::Tensor>> {
        return NumberTensor(1);
      });
  flow.AddStage("gate")
      .On(x, [](const nn::Tensor&) { return absl::OkStatus(); })
      .When([] { return false; });
  DataflowOptions options;
  options.timeout = absl::Milliseconds(50);
  EXPECT_EQ(RunDataflow(flow, options).status(),
            absl::DeadlineExceededError(
                "no handler has returned for 50ms: source waits for room in x; "
                "gate waits for a condition of its own"));
}

// ---- the simulator --------------------------------------------------------

struct Layout {
  int processes, square_in, sink_in;
};
constexpr Layout kLayouts[] = {
    {1, 0, 0}, {2, 1, 0}, {2, 0, 1}, {2, 1, 1}, {3, 1, 2}};

using MakeFlow = std::function<Dataflow(const SmallFlow&, Numbers*)>;

TEST(SimulateDataflow, EverySeedGivesTheSameInOrder) {
  for (const std::uint64_t seed : Seeds(2000)) {
    const Layout& layout = kLayouts[seed % 5];
    SmallFlow small;
    small.count = 12;
    small.capacity = 1 + static_cast<int>(seed % 3);
    small.square_in = layout.square_in;
    small.sink_in = layout.sink_in;
    const bool diamond = seed % 2 == 0;
    Numbers got;
    const Dataflow flow = diamond ? Diamond(small, &got) : Chain(small, &got);
    DataflowSimulation options;
    options.seed = seed;
    options.processes = layout.processes;
    std::size_t channels = 0;
    for (const auto& report : SimulateDataflow(flow, options)) {
      ASSERT_TRUE(report.ok()) << report.status() << ReplayCommand(seed);
      ExpectKept(*report, flow, small.count);
      channels += report->channels.size();
    }
    ASSERT_EQ(channels, flow.channels().size()) << ReplayCommand(seed);
    ASSERT_EQ(got.values, diamond ? SixTimes(12) : Squares(12))
        << ReplayCommand(seed);
    ASSERT_TRUE(got.ended) << ReplayCommand(seed);
  }
}

// All processes return the error of the one that failed.
TEST(SimulateDataflow, AHandlerThatThrowsEndsAllProcesses) {
  for (const std::uint64_t seed : Seeds(500)) {
    const Layout& layout = kLayouts[seed % 5];
    SmallFlow small;
    small.capacity = 1 + static_cast<int>(seed % 3);
    small.square_in = layout.square_in;
    small.sink_in = layout.sink_in;
    small.throws_at = static_cast<int>(seed % small.count);
    Numbers got;
    DataflowSimulation options;
    options.seed = seed;
    options.processes = layout.processes;
    for (const auto& report : SimulateDataflow(Chain(small, &got), options)) {
      ASSERT_EQ(report.status(), absl::InternalError(absl::StrCat(
                                     "stage square, numbers, number ",
                                     small.throws_at, ": too large")))
          << ReplayCommand(seed);
    }
    ASSERT_FALSE(got.ended) << ReplayCommand(seed);
    ASSERT_LE(got.values.size(), static_cast<std::size_t>(small.throws_at))
        << ReplayCommand(seed);
  }
}

TEST(SimulateDataflow, GivesUpAfterTheLimitOnEvents) {
  SmallFlow small;
  small.square_in = 1;
  Numbers got;
  DataflowSimulation options;
  options.processes = 2;
  options.events_max = 10;
  const Reports reports = SimulateDataflow(Chain(small, &got), options);
  ASSERT_EQ(reports.size(), 2u);
  for (const auto& report : reports) {
    EXPECT_EQ(report.status(), absl::AbortedError("no end after 10 events"));
  }
}

// A process is lost after any number of frames: the others report that, or had
// all tensors before. The tensors that arrived until then were in order.
TEST(SimulateDataflow, ALostProcessEndsTheOthers) {
  int lost = 0, whole = 0;
  for (const std::uint64_t seed : Seeds(500)) {
    SmallFlow small;
    small.square_in = 1;
    Numbers got;
    DataflowSimulation options;
    options.seed = seed;
    options.processes = 2;
    options.lost_process = 1;
    options.lost_after_frames = seed;
    const Reports reports = SimulateDataflow(Chain(small, &got), options);
    std::vector<std::int64_t> expected = Squares(small.count);
    ASSERT_LE(got.values.size(), expected.size());
    expected.resize(got.values.size());
    ASSERT_EQ(got.values, expected) << ReplayCommand(seed);
    if (reports[0].ok()) {
      ++whole;
      ASSERT_TRUE(got.ended) << ReplayCommand(seed);
      continue;
    }
    ++lost;
    ASSERT_EQ(reports[0].status().code(), absl::StatusCode::kUnavailable);
    ASSERT_THAT(std::string(reports[0].status().message()),
                HasSubstr("process 1 is lost"))
        << ReplayCommand(seed);
  }
  if (Seeds(500).size() < 500) return;
  EXPECT_GT(lost, 20);
  EXPECT_GT(whole, 20);
}

// Without progress virtual time advances to the deadline at once.
TEST(SimulateDataflow, AStandstillIsADeadline) {
  Dataflow flow;
  const Channel x = flow.AddChannel("x", /*capacity=*/1);
  flow.AddStage("source")
      .Source(x,
              []() -> absl::StatusOr<std::optional<nn::Tensor>> {
                return NumberTensor(1);
              })
      .When([] { return false; });
  flow.AddStage("sink")
      .On(x, [](const nn::Tensor&) { return absl::OkStatus(); })
      .InProcess(1);
  DataflowSimulation options;
  options.processes = 2;
  options.timeout = absl::Hours(24);
  for (const auto& report : SimulateDataflow(flow, options)) {
    EXPECT_EQ(report.status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(report.status().message()),
                HasSubstr("no handler has returned for 24h"));
  }
}

TEST(SimulateDataflow, MistakesAreTold) {
  EXPECT_THAT(
      std::string(SimulateDataflow(Dataflow(), {})[0].status().message()),
      HasSubstr("has no stage"));
  DataflowSimulation none;
  none.processes = 0;
  EXPECT_THAT(
      std::string(SimulateDataflow(Dataflow(), none)[0].status().message()),
      HasSubstr("processes must be at least 1"));
}

// ---- processes ------------------------------------------------------------

// Runs each process in a thread of the test, with an actor system of its own,
// and real links between them.
Reports RunInProcesses(int processes, Transport transport,
                       const std::function<Dataflow(int process)>& make) {
  Reports reports(processes, absl::UnknownError("did not end"));
  absl::Notification listening;
  int port = 0;
  std::vector<std::thread> threads;
  for (int process = 0; process < processes; ++process) {
    threads.emplace_back([&, process] {
      DataflowOptions options;
      options.timeout = absl::Seconds(60);
      options.cluster.emplace();
      options.cluster->process = process;
      options.cluster->processes = processes;
      options.cluster->insecure = true;
      options.cluster->transport = transport;
      options.cluster->join_timeout = absl::Seconds(30);
      if (process == 0) {
        options.cluster->on_listening = [&](int at) {
          port = at;
          listening.Notify();
          return absl::OkStatus();
        };
      } else {
        listening.WaitForNotification();
        options.cluster->master_port = port;
      }
      reports[process] = RunDataflow(make(process), options);
      if (process == 0 && !listening.HasBeenNotified()) listening.Notify();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return reports;
}

TEST(DataflowInProcesses, HasTheSameInOrder) {
  for (const Transport transport : {Transport::kShm, Transport::kTcp}) {
    SmallFlow small;
    small.count = 300;
    small.square_in = 1;
    small.sink_in = 2;
    std::vector<Numbers> got(3);
    const Reports reports = RunInProcesses(
        3, transport, [&](int p) { return Diamond(small, &got[p]); });
    for (const auto& report : reports) {
      ASSERT_TRUE(report.ok()) << report.status();
      ExpectKept(*report, Diamond(small, &got[0]), 300);
    }
    EXPECT_EQ(got[2].values, SixTimes(300));
    EXPECT_TRUE(got[2].ended);
  }
}

TEST(DataflowInProcesses, AllSayWhatOneFailedWith) {
  SmallFlow small;
  small.square_in = 1;
  small.throws_at = 11;
  std::vector<Numbers> got(2);
  for (const auto& report : RunInProcesses(
           2, Transport::kShm, [&](int p) { return Chain(small, &got[p]); })) {
    EXPECT_EQ(
        report.status(),
        absl::InternalError("stage square, numbers, number 11: too large"));
  }
}

TEST(DataflowInProcesses, OtherDescriptionsAreRefused) {
  std::vector<Numbers> got(2);
  const Reports reports = RunInProcesses(2, Transport::kShm, [&](int p) {
    SmallFlow small;
    small.square_in = 1;
    small.capacity = 2 + p;
    return Chain(small, &got[p]);
  });
  for (const auto& report : reports) {
    EXPECT_EQ(report.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(
        std::string(report.status().message()),
        testing::AllOf(HasSubstr("line 1 of the dataflow is source"),
                       HasSubstr("numbers[2]"), HasSubstr("numbers[3]")));
  }
}

}  // namespace
}  // namespace troupe::actors

// Deliberate bugs in the sources that drive GPUs, on the emulated GPU
// (base/cuda/emulated): some seeds reveal each of them by other bits, a report
// or an error. Correct code shows none of these. Each run is a new process.
//
//   bazel run //tests/actors/engine/planted:device_bugs_test -- --table
//
// Options --config=tsan add the races that ThreadSanitizer
// reports.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "nn/ops/loss.h"
#include "tests/actors/engine/planted/bug.h"
#include "tests/actors/engine/planted/device_ranks.h"
#include "tests/actors/sim/planted/count_seeds.h"
#include "tests/actors/sim/planted/hunt.h"
#include "tests/actors/sim/planted/races.h"
#include "tests/base/seeds.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::actors {
namespace {

constexpr std::uint64_t kSeeds = 20;
// Number of seeds for a bug that none of those reveals: one found by 2 of 20 is
// found by none of some other 10.
constexpr std::uint64_t kSeedsIfRare = 200;
constexpr std::uint64_t kSeedsUnderTsan = 6;
constexpr std::int64_t kSteps = 6;  // graphs run the last three

// --- The programs; each returns the outcome of a seed as a line ---

emulated_cuda::Options OptionsOf(std::uint64_t seed) {
  emulated_cuda::Options options = nn::cuda::EmulatedWorld::OptionsOf(seed);
  options.devices = 4;
  return options;
}

// Returns the outcome of `run` in an emulated world, or the problems that the
// world reports.
template <typename Run>
std::string InWorld(const emulated_cuda::Options& options, Run run) {
  emulated_cuda::Reset(options);
  const std::string outcome = run();
  const std::vector<std::string> problems = emulated_cuda::Finish();
  if (problems.empty() || absl::StartsWith(outcome, "error")) return outcome;
  return absl::StrCat("report: ", absl::StrJoin(problems, "; "));
}

std::string Train(std::uint64_t seed, const char* device, int dp, int pp,
                  const char* graphs = "off") {
  SmallJobOptions job;
  job.ranks = dp;
  job.steps = kSteps;
  job.momentum = 0.9;
  job.width = 10;
  const EngineFixture fixture(job, [&](JobSpec& spec) {
    spec.device = *nn::Device::Parse(device);
    spec.kernels = nullptr;
    spec.loss = nn::ops::MeanSquaredError;
    spec.plan.mesh = pipeline::Mesh(dp, pp);
    spec.plan.micro_batch_size = 4;
    if (pp == 2) spec.plan.cuts = {2};
    spec.cuda_graphs = graphs;
  });
  return InWorld(OptionsOf(seed),
                 [&] { return DeviceRanks(fixture, seed).Train(kSteps); });
}

std::string TwoRanks(std::uint64_t seed) { return Train(seed, "cuda:0", 2, 1); }
std::string OneRank(std::uint64_t seed) { return Train(seed, "cuda", 1, 1); }
std::string OneRankAsGraph(std::uint64_t seed) {
  return Train(seed, "cuda", 1, 1, /*graphs=*/"on");
}
std::string TwoGpus(std::uint64_t seed) { return Train(seed, "cuda", 2, 1); }
std::string TwoStages(std::uint64_t seed) { return Train(seed, "cuda", 1, 2); }
// Returns a block of memory to the driver while a kernel uses it.
std::string MemoryRunsOut(std::uint64_t seed) {
  emulated_cuda::Options options = OptionsOf(seed);
  options.device_bytes = std::size_t{1} << 20;
  return InWorld(options, [] {
    auto device = *nn::cuda::CudaDevice::Open(0);
    constexpr std::int64_t kLarge = 150 << 10;  // elements: 600 of 1024 KiB
    {
      const nn::Tensor large =
          nn::Tensor::Empty({kLarge}, nn::DType::kF32, device->allocator());
      const nn::Tensor some = large.FlatView(0, {64});
      device
          ->Reduce(nn::Queue::kCompute,
                   {nn::ReduceOp::kSum, {some, some}, {some}})
          .IgnoreError();
    }
    const auto other = nn::Tensor::Create({kLarge + (50 << 10)},
                                          nn::DType::kF32, device->allocator());
    return other.ok() ? std::string("enough")
                      : absl::StrCat("error: ", other.status().ToString());
  });
}

// Copies to pageable memory of the host.
std::string ReadsBack(std::uint64_t seed) {
  return InWorld(OptionsOf(seed), [] {
    auto device = *nn::cuda::CudaDevice::Open(0);
    nn::CachingAllocator pageable;
    std::string text;
    for (float number = 1; number < 4; ++number) {
      const nn::Tensor there =
          nn::cuda::OnDevice(*device, nn::Queue::kCompute, {number, 2});
      const nn::Tensor sum =
          nn::cuda::Sum(*device, nn::Queue::kCompute, there, there);
      const nn::Tensor host = nn::Tensor::Zeros({2}, nn::DType::kF32, pageable);
      device->CopyBytes(nn::Queue::kCompute, sum, host);
      const absl::Status status =
          nn::cuda::Await(*device, device->Record(nn::Queue::kCompute));
      if (!status.ok()) return absl::StrCat("error: ", status.ToString());
      absl::StrAppend(&text, " ", absl::StrJoin(host.span<float>(), " "));
    }
    return text;
  });
}

// --- The bugs ---

struct Case {
  Bug bug;
  const char* name;
  const char* source;
  std::string (*outcome)(std::uint64_t seed);
};

#define TROUPE_CASE(bug, source, outcome) \
  { Bug::k##bug, #bug, source, outcome }

constexpr char kQueue[] = "nn/kernels/cuda/device/stream_queue.cc";
constexpr char kDevice[] = "nn/kernels/cuda/device/cuda_device.cc";
constexpr char kCopies[] = "actors/chunks/step/staged_copy.cc";
constexpr char kGroup[] = "comm/device/device_state.cc";
constexpr char kLosses[] = "actors/chunks/step/loss_reader.cc";
constexpr char kUpdates[] = "actors/engine/bucket_events.cc";
constexpr char kGraphs[] = "actors/engine/recording/graph_inputs.cc";
constexpr char kTransfers[] = "actors/engine/inbox.cc";

// Prints the bug's name in messages of GoogleTest.
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr Case kCases[] = {
    TROUPE_CASE(EventNotWaitedFor, kQueue, TwoRanks),
    TROUPE_CASE(DoneWithoutAsking, kQueue, TwoRanks),
    TROUPE_CASE(RecordedBeforeHeldWork, kQueue, TwoRanks),
    TROUPE_CASE(OvertakesAHeldWait, kDevice, TwoRanks),
    TROUPE_CASE(StagingUsedAgainTooEarly, kDevice, TwoRanks),
    TROUPE_CASE(ReadBackTooEarly, kDevice, ReadsBack),
    TROUPE_CASE(EventUsedAgainTooEarly, "nn/kernels/cuda/device/event_pool.cc",
                TwoRanks),
    TROUPE_CASE(FreedWhileInUse, "nn/kernels/cuda/device/device_memory.cc",
                MemoryRunsOut),
    TROUPE_CASE(BatchNotWaitedFor, kCopies, TwoRanks),
    TROUPE_CASE(RecordedBeforeTheCopy, kCopies, TwoRanks),
    TROUPE_CASE(BatchOverwritten, kCopies, TwoRanks),
    TROUPE_CASE(ReducedBeforeTheGradient, kGroup, TwoGpus),
    TROUPE_CASE(OneRankNotWaitedFor, kGroup, TwoGpus),
    TROUPE_CASE(RecordedOnAnotherStream, "actors/engine/queue_work.cc",
                TwoRanks),
    TROUPE_CASE(LossReadTooEarly, kLosses, TwoRanks),
    TROUPE_CASE(LossCopiedTooEarly, kLosses, TwoRanks),
    TROUPE_CASE(ScalarsOverwritten, kLosses, OneRank),
    TROUPE_CASE(UpdateBesideReduction, kUpdates, TwoRanks),
    TROUPE_CASE(ReaderBesideUpdate, kUpdates, TwoRanks),
    TROUPE_CASE(GraphWithOldPointer, kGraphs, OneRankAsGraph),
    TROUPE_CASE(TransferReadTooEarly, kTransfers, TwoStages),
    TROUPE_CASE(TransferMemoryUsedAgain, kTransfers, TwoStages),
};

Trial Right(const Case& c) {
  return TryInChild([&] { return c.outcome(/*seed=*/0); });
}

Tally Count(const Case& c, Bug bug, const std::vector<std::uint64_t>& seeds) {
  return CountSeeds(seeds, Right(c), [&](std::uint64_t seed) {
    PlantedBug<Bug>() = bug;
    return c.outcome(seed);
  });
}

// Returns the races that ThreadSanitizer reports for some seeds.
std::string RacesOf(const Case& c, Bug bug) {
  return InChild([&] {
    PlantedBug<Bug>() = bug;
    for (std::uint64_t seed = 0; seed < kSeedsUnderTsan; ++seed) {
      c.outcome(seed);
    }
  });
}

class DeviceBugsTest : public testing::TestWithParam<Case> {};

TEST_P(DeviceBugsTest, AreFoundBySeeds) {
  const Case& c = GetParam();
  Tally tally = Count(c, c.bug, Seeds(kSeeds));
  if (tally.found() == 0) tally = Count(c, c.bug, EverySeed(kSeedsIfRare));
  EXPECT_GT(tally.found(), 0);
  std::printf("%s: %s\n%s\n", c.name, tally.ToString().c_str(),
              tally.last.c_str());
}

INSTANTIATE_TEST_SUITE_P(Bugs, DeviceBugsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

struct Program {
  const char* name;
  std::string (*outcome)(std::uint64_t seed);
};

class RightCodeTest : public testing::TestWithParam<Program> {};

TEST_P(RightCodeTest, ShowsNoBug) {
  Case c = {};
  c.outcome = GetParam().outcome;
  const Tally tally = Count(c, Bug::kNone, Seeds(kSeeds));
  EXPECT_EQ(tally.found(), 0) << tally.last;
}

INSTANTIATE_TEST_SUITE_P(
    Programs, RightCodeTest,
    testing::Values(Program{"TwoRanks", TwoRanks}, Program{"TwoGpus", TwoGpus},
                    Program{"OneRank", OneRank},
                    Program{"OneRankAsGraph", OneRankAsGraph},
                    Program{"TwoStages", TwoStages},
                    Program{"MemoryRunsOut", MemoryRunsOut},
                    Program{"ReadsBack", ReadsBack}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(DeviceBugsTest, EachHasACase) { ExpectACaseForEach<Bug>(kCases); }

void PrintTable() {
  std::printf("| bug | in | %s |\n| --- | --- | --- |\n",
              kUnderTsan ? "ThreadSanitizer names" : "found by seeds");
  for (const Case& c : kCases) {
    const std::string found = kUnderTsan
                                  ? NamedRace(RacesOf(c, c.bug))
                                  : Count(c, c.bug, Seeds(kSeeds)).ToString();
    std::printf("| %s | `%s` | %s |\n", c.name, c.source, found.c_str());
  }
}

}  // namespace
}  // namespace troupe::actors

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--table") == 0) {
    troupe::actors::PrintTable();
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

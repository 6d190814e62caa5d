// Tests a GPT of 8 layers and ResNet-18 under every schedule that has a name:
// 1, 2, 4 and 8 ranks, 1 and 2 chunks, one to four times as many micro-batches
// as ranks, one and two replicas. Losses, and the parameters after each step,
// are those of one rank a replica with the same micro-batches, to the bit.
//
// An ordinary run tries a few cases of each schedule, at random places of the
// matrix; TROUPE_SIM_TIMES=40 tries all (docs/simulation.md).

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "pipeline/schedules/schedules.h"
#include "tests/actors/sim/deep_models.h"
#include "tests/actors/sim/simulated_run.h"

namespace troupe::actors {
namespace {

using pipeline::NamedSchedule;

const DeepModel& ModelOf(int number) {
  static const auto* const models =
      new std::vector<DeepModel>{SmallGpt(), SmallResNet18()};
  return (*models)[number];
}
constexpr int kModels = 2;

struct Case {
  int dp = 1, pp = 1, micro_batches = 1, chunks = 1;

  std::string ToString() const {
    return absl::StrCat("dp ", dp, ", pp ", pp, ", m ", micro_batches,
                        ", chunks ", chunks);
  }
};

// Returns the job with the schedule and even cuts; nothing if the schedule does
// not take the sizes, or the model cannot be cut into that many stages.
std::optional<JobSpec> Scheduled(const DeepModel& model,
                                 const NamedSchedule& schedule, const Case& c) {
  const auto cuts = model.Cuts(c.pp * c.chunks);
  if (!cuts.has_value()) return std::nullopt;
  JobSpec spec = model.Job(pipeline::Mesh(c.dp, c.pp), c.micro_batches);
  spec.plan.virtual_stages = c.chunks;
  const auto tables = schedule.tables(c.pp, c.micro_batches, c.chunks);
  if (!tables.ok()) return std::nullopt;
  const absl::Status set = pipeline::SetSchedule(schedule.name, spec.plan);
  EXPECT_TRUE(set.ok()) << schedule.name << ": " << set;
  spec.plan.cuts = *cuts;
  return spec;
}

// Returns all cases of a model and a schedule, shuffled.
std::vector<Case> CasesOf(const DeepModel& model,
                          const NamedSchedule& schedule) {
  std::vector<Case> cases;
  const std::vector<int> chunk_counts = schedule.chunks == 0
                                            ? std::vector<int>{1, 2}
                                            : std::vector<int>{schedule.chunks};
  for (const int chunks : chunk_counts) {
    for (const int pp : {1, 2, 4, 8}) {
      for (const int rounds : {1, 2, 3, 4}) {
        for (const int dp : {1, 2}) {
          const Case c = {dp, pp, rounds * pp, chunks};
          if (Scheduled(model, schedule, c)) cases.push_back(c);
        }
      }
    }
  }
  nn::RandomStream draws(nn::RandomKey(2, nn::Purpose::kTest), {});
  for (std::size_t i = cases.size(); i > 1; --i) {
    std::swap(cases[i - 1], cases[draws.Below(i)]);
  }
  return cases;
}

// Returns the run with one rank a replica, which is made once.
const SimulatedRun& Unpiped(int model, const Case& c) {
  static auto* const runs =
      new std::map<std::tuple<int, int, int>, SimulatedRun>;
  SimulatedRun& run = (*runs)[{model, c.dp, c.micro_batches}];
  if (run.result.ok()) return run;
  run = Simulate(ModelOf(model).Job(pipeline::Mesh(c.dp), c.micro_batches),
                 /*seed=*/0);
  EXPECT_TRUE(run.result.ok()) << run.result.status();
  return run;
}

class ScheduleMatrixTest
    : public testing::TestWithParam<std::tuple<int, NamedSchedule>> {};

TEST_P(ScheduleMatrixTest, GivesTheBitsOfOneRank) {
  const auto& [number, schedule] = GetParam();
  const DeepModel& model = ModelOf(number);
  const std::vector<Case> cases = CasesOf(model, schedule);
  ASSERT_FALSE(cases.empty());
  int tried = 0;
  for (const std::uint64_t seed : Seeds(2)) {
    if (seed >= cases.size()) break;
    const Case& c = cases[seed];
    const JobSpec spec = *Scheduled(model, schedule, c);
    ASSERT_EQ(Difference(Simulate(spec, seed), Unpiped(number, c)), "")
        << c.ToString() << ReplayCommand(seed);
    ++tried;
  }
  std::printf("%d of %zu cases\n", tried, cases.size());
}

INSTANTIATE_TEST_SUITE_P(
    All, ScheduleMatrixTest,
    testing::Combine(testing::Range(0, kModels),
                     testing::ValuesIn(pipeline::NamedSchedules())),
    [](const auto& info) {
      return absl::StrCat(ModelOf(std::get<0>(info.param)).name, "_",
                          std::get<1>(info.param).name);
    });

}  // namespace
}  // namespace troupe::actors

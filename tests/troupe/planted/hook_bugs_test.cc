// Deliberate bugs in the reduction of a DDP's buckets, which simulated runs
// must reveal: two ranks, of which one has no use for a layer.

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn/autograd/var_math.h"
#include "nn/modules/linear.h"
#include "tests/actors/sim/planted/hunt.h"
#include "tests/troupe/planted/bug.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

constexpr char kOtherBits[] = "other parameters than without a hook";

struct Case {
  Bug bug;
  const char* name;
  const char* fault;
};

constexpr Case kCases[] = {
    {Bug::kLaunchedAsReady, "LaunchedAsReady",
     "collective 0 of the group differs"},
    {Bug::kAveragedTwice, "AveragedTwice", kOtherBits},
};

// Prints the bug's name in messages of GoogleTest.
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// The buckets of `extra` are the last ones. A backward completes them last, and
// that of a rank which does not use them at once.
struct Branches : nn::Net {
  nn::Linear& extra = Add<nn::Linear>("extra", 4, 40);
  nn::Linear& used = Add<nn::Linear>("used", 4, 2);
  Var Forward(Var x) override {
    if (!uses_extra) return used(x);
    const Var sum = nn::Sum(extra(x));
    return used(x) + sum;
  }
  bool uses_extra = true;
};

// The parameters of rank 0, or the error of the run.
struct Outcome {
  std::vector<float> values;
  std::string error;
};

Outcome TrainOnce(bool hook, std::uint64_t seed) {
  Outcome outcome;
  const Program program = [&](Rank& rank) {
    auto model = rank.Make<Branches>();
    model->uses_extra = rank.number() == 0;
    DDPOptions options;
    options.first_bucket_mb = options.bucket_cap_mb = 1e-5;
    DDP ddp(model, options);
    if (hook) ddp.RegisterCommHook(AllReduceHook);
    Sgd sgd(ddp, {/*lr=*/0.1});
    for (int step = 0; step < 2; ++step) {
      sgd.ZeroGrad();
      nn::MeanSquaredError(ddp(rank.Randn({4, 4})), rank.Randn({4, 2}))
          .Backward();
      sgd.Step();
    }
    if (rank.number() != 0) return;
    for (const nn::Parameter* parameter : ddp.Parameters()) {
      const float* const begin = parameter->value.data<float>();
      outcome.values.insert(outcome.values.end(), begin,
                            begin + parameter->value.numel());
    }
  };
  SpawnOptions ranks;
  ranks.ranks = 2;
  outcome.error =
      std::string(Simulate(program, ranks, {seed}).status.message());
  return outcome;
}

class HookBugsTest : public testing::TestWithParam<Case> {};

TEST_P(HookBugsTest, IsFound) {
  const Case& bug = GetParam();
  const Outcome want = TrainOnce(/*hook=*/false, /*seed=*/0);
  ASSERT_EQ(want.error, "");
  const auto run = [&](std::uint64_t seed) -> std::string {
    const Outcome have = TrainOnce(/*hook=*/true, seed);
    if (!have.error.empty()) return have.error;
    return have.values == want.values ? "" : kOtherBits;
  };
  ASSERT_EQ(run(0), "");
  ExpectFound(bug.bug, bug.name, bug.fault, run);
}

INSTANTIATE_TEST_SUITE_P(All, HookBugsTest, testing::ValuesIn(kCases),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST(HookBugs, EveryBugHasACase) { ExpectACaseForEach<Bug>(kCases); }

}  // namespace
}  // namespace troupe

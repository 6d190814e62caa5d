// Deliberate bugs in a DDP, which simulated runs of two ranks must reveal: by
// an error, by replicas that differ, or by other parameters than those of the
// same training in a plainer way.

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_error.h"
#include "gtest/gtest.h"
#include "nn/autograd/var_math.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/linear.h"
#include "tests/actors/sim/planted/hunt.h"
#include "tests/troupe/planted/bug.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

constexpr int kRanks = 2;
constexpr char kOtherBits[] = "other parameters than in the plain way";
constexpr char kRanksDiffer[] = "the ranks have different parameters";
constexpr char kMoved[] = "a layer that no rank trains has moved";
constexpr char kStaleBuffers[] = "buffers of a rank that has ended";

// Trains with what the bugs concern or, if `plain`, in a way without it that
// has the same bits.
using Training = void (*)(Rank& rank, bool plain, std::vector<float>& values);

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

DDPOptions SmallBuckets() {
  DDPOptions options;
  options.first_bucket_mb = options.bucket_cap_mb = 1e-5;
  return options;
}

void Copy(const DDP& ddp, std::vector<float>& values) {
  for (const nn::Parameter* parameter : ddp.Parameters()) {
    const auto span = parameter->value.span<float>();
    values.insert(values.end(), span.begin(), span.end());
  }
}

// Trains for `steps` steps, each of so many backwards.
void TrainSteps(Rank& rank, DDP& ddp, Sgd& sgd, int steps, int backwards = 1) {
  for (int step = 0; step < steps; ++step) {
    sgd.ZeroGrad();
    for (int i = 0; i < backwards; ++i) {
      nn::MeanSquaredError(ddp(rank.Randn({4, 4})), rank.Randn({4, 2}))
          .Backward();
    }
    sgd.Step();
  }
}

// The plain way has no hook.
void TrainWithHook(Rank& rank, bool plain, std::vector<float>& values) {
  auto model = rank.Make<Branches>();
  model->uses_extra = rank.number() == 0;
  DDP ddp(model, SmallBuckets());
  if (!plain) ddp.RegisterCommHook(AllReduceHook);
  Sgd sgd(ddp, {/*lr=*/0.1});
  TrainSteps(rank, ddp, sgd, /*steps=*/2);
  Copy(ddp, values);
}

// The backwards complete buckets in another order than that of their numbers,
// which the ranks follow from step 22 on. The plain way has a hook.
void TrainLong(Rank& rank, bool plain, std::vector<float>& values) {
  auto model = rank.Make<Branches>();
  DDP ddp(model, SmallBuckets());
  if (plain) ddp.RegisterCommHook(AllReduceHook);
  Sgd sgd(ddp, {/*lr=*/0.01});
  TrainSteps(rank, ddp, sgd, /*steps=*/23);
  Copy(ddp, values);
}

// The plain way updates in Step().
void TrainInBackward(Rank& rank, bool plain, std::vector<float>& values) {
  auto model = rank.Make<Branches>();
  DDP ddp(model, SmallBuckets());
  Sgd sgd(ddp, {/*lr=*/0.1});
  if (!plain) ddp.StepInBackward(sgd);
  TrainSteps(rank, ddp, sgd, /*steps=*/2);
  Copy(ddp, values);
}

// Two backwards add up in each step, and both reduce. The plain way has a hook
// that waits for each reduction.
void TrainTwice(Rank& rank, bool plain, std::vector<float>& values) {
  auto model = rank.Make<Branches>();
  DDP ddp(model, SmallBuckets());
  if (plain) {
    ddp.RegisterCommHook([](Group& group, GradBucket& bucket) {
      group.AllReduce(bucket.buffer(), ReduceOp::kAvg);
    });
  }
  Sgd sgd(ddp, {/*lr=*/0.1});
  TrainSteps(rank, ddp, sgd, /*steps=*/2, /*backwards=*/2);
  Copy(ddp, values);
}

// A norm with running statistics, and a layer that only some forwards use.
struct Normed : nn::Net {
  nn::BatchNorm1d& norm = Add<nn::BatchNorm1d>("norm", 3);
  nn::Linear& last = Add<nn::Linear>("last", 3, 2);
  nn::Linear& once = Add<nn::Linear>("once", 3, 2);
  Var Forward(Var x) override {
    const Var y = norm(x);
    return uses_once ? last(y) + once(y) : last(y);
  }
  bool uses_once = true;
};

void ExpectThat(bool holds, const char* fault) {
  if (!holds) throw base::StatusError(absl::InternalError(fault));
}

// Rank 0 has two batches, rank 1 five. Only the first one uses the layer
// `once`, which rank 0 runs again on no rows.
void TrainUneven(Rank& rank, bool, std::vector<float>& values) {
  auto model = rank.Make<Normed>();
  DDP ddp(model, SmallBuckets());
  SgdOptions decay{/*lr=*/0.1, /*momentum=*/0.9};
  decay.weight_decay = 0.1;
  Sgd sgd(ddp, decay);
  const auto once = [&model] {
    const auto span = model->once.weight().value.span<float>();
    return std::vector<float>(span.begin(), span.end());
  };
  std::vector<float> before;
  {
    auto joined = ddp.Join();
    for (int i = 0; i < 2 + 3 * rank.number(); ++i) {
      model->uses_once = i == 0;
      if (i == 3) sgd.set_lr(0.3);
      sgd.ZeroGrad();
      nn::MeanSquaredError(ddp(rank.Randn({4, 3})), rank.Ones({4, 2}))
          .Backward();
      sgd.Step();
      if (i == 0) before = once();
    }
    model->uses_once = true;
  }
  ExpectThat(once() == before, kMoved);
  const Tensor batches = ddp.module().Buffers()[2]->value;
  ExpectThat(batches.data<std::int64_t>()[0] == 5, kStaleBuffers);
  Copy(ddp, values);
}

struct Case {
  Bug bug;
  const char* name;
  const char* fault;
  Training train;
};

constexpr Case kCases[] = {
    {Bug::kLaunchedAsReady, "LaunchedAsReady",
     "collective 0 of the group differs", TrainWithHook},
    {Bug::kAveragedTwice, "AveragedTwice", kOtherBits, TrainWithHook},
    {Bug::kUpdatedBeforeReduced, "UpdatedBeforeReduced", kRanksDiffer,
     TrainInBackward},
    {Bug::kAddedWhileReduced, "AddedWhileReduced",
     "an action finishes once a step", TrainTwice},
    {Bug::kShadowUses, "ShadowUses", kMoved, TrainUneven},
    {Bug::kShadowsRate, "ShadowsRate", kRanksDiffer, TrainUneven},
    {Bug::kBuffersOfRank0, "BuffersOfRank0", kStaleBuffers, TrainUneven},
    {Bug::kSwappedEarly, "SwappedEarly", "of the group differs", TrainLong},
};

// Prints the bug's name in messages of GoogleTest.
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// The parameters of each rank, or the error of the run.
struct Outcome {
  std::vector<float> values[kRanks];
  std::string error;
};

Outcome TrainOnce(Training train, bool plain, std::uint64_t seed) {
  Outcome outcome;
  const Program program = [&](Rank& rank) {
    train(rank, plain, outcome.values[rank.number()]);
  };
  SpawnOptions ranks;
  ranks.ranks = kRanks;
  outcome.error =
      std::string(Simulate(program, ranks, {seed}).status.message());
  return outcome;
}

class DdpBugsTest : public testing::TestWithParam<Case> {};

TEST_P(DdpBugsTest, IsFound) {
  const Case& bug = GetParam();
  const Outcome want = TrainOnce(bug.train, /*plain=*/true, /*seed=*/0);
  ASSERT_EQ(want.error, "");
  const auto run = [&](std::uint64_t seed) -> std::string {
    const Outcome have = TrainOnce(bug.train, /*plain=*/false, seed);
    if (!have.error.empty()) return have.error;
    if (have.values[0] != have.values[1]) return kRanksDiffer;
    return have.values[0] == want.values[0] ? "" : kOtherBits;
  };
  for (std::uint64_t seed = 0; seed < 5; ++seed) ASSERT_EQ(run(seed), "");
  ExpectFound(bug.bug, bug.name, bug.fault, run);
}

INSTANTIATE_TEST_SUITE_P(All, DdpBugsTest, testing::ValuesIn(kCases),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST(DdpBugs, EveryBugHasACase) { ExpectACaseForEach<Bug>(kCases); }

}  // namespace
}  // namespace troupe

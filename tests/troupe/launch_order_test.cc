// DDPs whose models use their layers in another order than that of their
// declaration, which changes in the middle of a run and is another one on each
// rank: buckets are reduced as those of rank 0 become ready, on all ranks from
// the same backward on, and the bits are those of a single bucket.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"
#include "tests/troupe/ranks.h"
#include "troupe/ddp.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using Order = std::vector<int>;

// Layers 0, 1, 2, whose buckets are 2, 1, 0.
struct Turned : nn::Net {
  nn::Linear& zero = Add<nn::Linear>("zero", 4, 4);
  nn::Linear& one = Add<nn::Linear>("one", 4, 4);
  nn::Linear& two = Add<nn::Linear>("two", 4, 4);
  Var Forward(Var x) override {
    nn::Linear* const layers[] = {&zero, &one, &two};
    for (const int i : order) x = (*layers[i])(x).Tanh();
    return x;
  }
  Order order = {0, 1, 2};
};

// How a program trains.
struct Way {
  const char* name;
  DDPOptions options = {};
  int micro_batches = 1;
  bool in_backward = false;
  bool unused = false;  // whether rank 1 leaves out layer 1
  bool hook = false;
};

// A bucket is a layer of 80 bytes, or all.
DDPOptions Buckets(DDPOptions options, bool one) {
  options.first_bucket_mb = options.bucket_cap_mb = one ? 1 : 8e-5;
  return options;
}

// Order in which a rank uses layers: it changes after 22 steps, when the ranks
// have followed the first one. The backward completes them from the end.
Order OrderOf(const Rank& rank, int step, bool unused) {
  if (unused && rank.number() == 1) return {0, 2};
  if (rank.number() % 2 == 1) return {0, 2, 1};
  return step < 22 ? Order{2, 1, 0} : Order{1, 2, 0};
}
const Order kFirst = {0, 1, 2}, kSecond = {2, 1, 0}, kThird = {2, 0, 1};
constexpr int kOrderedSteps = 64;

// Losses and orders that a rank has seen after each step.
struct Seen {
  std::vector<double> losses;
  std::vector<Order> orders;
  std::vector<float> values;  // at the end
};

void Copy(const DDP& ddp, std::vector<float>& values) {
  for (const nn::Parameter* parameter : ddp.Parameters()) {
    const auto span = parameter->value.span<float>();
    values.insert(values.end(), span.begin(), span.end());
  }
}

void Train(Rank& rank, const Way& way, bool one_bucket, Seen& seen) {
  auto model = rank.Make<Turned>();
  DDP ddp(model, Buckets(way.options, one_bucket));
  if (way.hook) ddp.RegisterCommHook(AllReduceHook);
  Adam adam(ddp, nn::AdamWDefaults());
  if (way.in_backward) ddp.StepInBackward(adam);
  for (int step = 0; step < kOrderedSteps; ++step) {
    model->order = OrderOf(rank, step, way.unused);
    adam.ZeroGrad();
    for (int m = 0; m < way.micro_batches; ++m) {
      std::optional<DDP::Unsynced> unsynced;
      if (m + 1 < way.micro_batches) unsynced.emplace(ddp.core());
      Var loss =
          nn::MeanSquaredError(ddp(rank.Randn({3, 4})), rank.Randn({3, 4}));
      seen.losses.push_back(loss.item());
      loss.Backward();
    }
    adam.Step();
    seen.orders.push_back(ddp.launch_order());
  }
  Copy(ddp, seen.values);
}

// Runs in threads, and under a seed if there is one, in which messages take
// their time.
std::vector<Seen> TrainAll(int ranks, const Way& way, bool one_bucket,
                           std::optional<std::uint64_t> seed) {
  std::vector<Seen> seen(ranks);
  const Program program = [&](Rank& rank) {
    Train(rank, way, one_bucket, seen[rank.number()]);
  };
  absl::Status status;
  if (seed.has_value()) {
    ProgramSimulation simulation;
    simulation.seed = *seed;
    simulation.message_time_max = absl::Milliseconds(1);
    status = Simulate(program, Ranks(ranks), simulation).status;
  } else {
    SpawnOptions options = Ranks(ranks);
    options.inline_bytes = 0;  // no reduction is the rank's own work
    status = Spawn(program, options);
  }
  EXPECT_TRUE(status.ok()) << way.name << ": " << status;
  return seen;
}

// 1,000 seeds of each: TROUPE_SIM_TIMES=100.
class LaunchOrderTest : public testing::TestWithParam<Way> {};

TEST_P(LaunchOrderTest, ChangesOnAllRanksAtOnceAndChangesNoBit) {
  const Way& way = GetParam();
  std::vector<Order> orders(kOrderedSteps, kFirst);
  if (!way.hook) {
    // Backward 21 broadcasts, and 22 is the first one to follow.
    for (int step = 21; step < kOrderedSteps; ++step) {
      orders[step] = step < 61 ? kSecond : kThird;
    }
  }
  for (const int ranks : {2, 4}) {
    const std::vector<Seen> want =
        TrainAll(ranks, way, /*one_bucket=*/true, /*seed=*/std::nullopt);
    const auto check = [&](std::optional<std::uint64_t> seed) {
      SCOPED_TRACE(seed.has_value() ? static_cast<int>(*seed) : -1);
      const std::vector<Seen> have = TrainAll(ranks, way, false, seed);
      for (int r = 0; r < ranks; ++r) {
        EXPECT_EQ(have[r].losses, want[r].losses) << "rank " << r;
        EXPECT_EQ(have[r].orders, orders) << "rank " << r;
        EXPECT_EQ(have[r].values, want[0].values) << "rank " << r;
      }
    };
    check(std::nullopt);
    for (const std::uint64_t seed : Seeds(10)) check(seed);
  }
}

DDPOptions Static() {
  DDPOptions options;
  options.static_graph = true;
  return options;
}

DDPOptions ExactMean() {
  DDPOptions options;
  options.exact_mean = true;
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    All, LaunchOrderTest,
    testing::Values(Way{"Plain"}, Way{"Static", Static(), 1, false, true},
                    Way{"ExactMean", ExactMean(), 2},
                    Way{"NoSync", {}, 3, false, true},
                    Way{"InBackward", {}, 1, true},
                    Way{"InBackwardUnused", {}, 1, true, true},
                    Way{"Hook", {}, 1, false, false, true}),
    [](const auto& info) { return std::string(info.param.name); });

// Runs the program in threads and under seeds.
void ExpectRunsInOrder(const Program& program, int ranks) {
  const absl::Status status = Spawn(program, Ranks(ranks));
  EXPECT_TRUE(status.ok()) << status;
  for (const std::uint64_t seed : Seeds(20)) {
    ProgramSimulation simulation;
    simulation.seed = seed;
    simulation.message_time_max = absl::Milliseconds(1);
    const SimulatedRun run = Simulate(program, Ranks(ranks), simulation);
    EXPECT_TRUE(run.status.ok()) << "seed " << seed << ": " << run.status;
  }
}

// The option holds whatever becomes ready first.
TEST(DdpOrderTest, DelayedParametersStayBehind) {
  ExpectRunsInOrder(
      [](Rank& rank) {
        auto model = rank.Make<Turned>();
        model->order = {2, 1, 0};
        DDPOptions options = Buckets({}, /*one=*/false);
        options.delay_all_reduce_named_params = {"zero.weight", "zero.bias"};
        DDP ddp(model, options);
        Sgd sgd(ddp, {/*lr=*/0.1});
        for (int step = 0; step < 22; ++step) {
          sgd.ZeroGrad();
          nn::Sum(ddp(rank.Randn({3, 4}))).Backward();
          sgd.Step();
        }
        EXPECT_EQ(ddp.launch_order(), Order({1, 0, 2}));
      },
      2);
}

// Rank 0 has 5 batches, and the order of rank 1 then counts, which has 42.
TEST(DdpOrderTest, RanksThatTrainDecideUnderJoin) {
  const Order used[] = {{0, 2, 1}, {2, 1, 0}, {1, 0, 2}};
  ExpectRunsInOrder(
      [&used](Rank& rank) {
        auto model = rank.Make<Turned>();
        model->order = used[rank.number()];
        DDP ddp(model, Buckets({}, /*one=*/false));
        Sgd sgd(ddp, {/*lr=*/0.1});
        {
          auto joined = ddp.Join();
          const int batches = rank.number() == 1 ? 42 : 5;
          for (int i = 0; i < batches; ++i) {
            sgd.ZeroGrad();
            nn::Sum(ddp(rank.Randn({3, 4}))).Backward();
            sgd.Step();
          }
        }
        EXPECT_EQ(ddp.launch_order(), Order({2, 1, 0}));
        std::vector<float> own;
        Copy(ddp, own);
        for (const nn::Parameter* parameter : ddp.Parameters()) {
          const Var all = rank.world().AllGather(parameter->value);
          const float* const values = all.tensor().data<float>();
          const std::int64_t count = parameter->value.numel();
          for (std::int64_t i = 0; i < all.numel(); ++i) {
            ASSERT_EQ(values[i], values[i % count]) << parameter->name;
          }
        }
      },
      3);
}

// Each model of a joint backward has its order.
TEST(DdpOrderTest, TwoModelsOfALossHaveTheirOwn) {
  ExpectRunsInOrder(
      [](Rank& rank) {
        auto below = rank.Make<Turned>();
        auto above = rank.Make<Turned>();
        below->order = {2, 1, 0};
        above->order = {1, 2, 0};
        DDP a(below, Buckets({}, false)), b(above, Buckets({}, false));
        Sgd sgd_a(a, {/*lr=*/0.1}), sgd_b(b, {/*lr=*/0.1});
        for (int step = 0; step < 22; ++step) {
          sgd_a.ZeroGrad();
          sgd_b.ZeroGrad();
          nn::Sum(b(a(rank.Randn({3, 4})))).Backward();
          // Another order on each rank: a wait for one model drives both.
          if ((rank.number() + step) % 2 == 0) {
            sgd_a.Step();
            sgd_b.Step();
          } else {
            sgd_b.Step();
            sgd_a.Step();
          }
        }
        EXPECT_EQ(a.launch_order(), Order({2, 1, 0}));
        EXPECT_EQ(b.launch_order(), Order({2, 0, 1}));
      },
      2);
}

// It counts backwards that reduce, whatever ranks do between them: here rank 1
// discards gradients that rank 0 adds to.
TEST(DdpOrderTest, BackwardsWithoutStepsCount) {
  ExpectRunsInOrder(
      [](Rank& rank) {
        auto model = rank.Make<Turned>();
        model->order = {2, 1, 0};
        DDP ddp(model, Buckets({}, /*one=*/false));
        Sgd sgd(ddp, {/*lr=*/0.1});
        for (int i = 0; i < 22; ++i) {
          if (rank.number() == 1) sgd.ZeroGrad();
          nn::Sum(ddp(rank.Randn({3, 4}))).Backward();
          EXPECT_EQ(ddp.launch_order(), i < 21 ? kFirst : kSecond) << i;
        }
        sgd.ZeroGrad();
      },
      2);
}

}  // namespace
}  // namespace troupe

// Losses that depend on the parameters of two models: a GAN, and an encoder
// with a decoder; in threads and under seeds. Same data and values give the
// same bits as what one model computes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/troupe/ranks.h"
#include "troupe/ddp.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// Runs in threads, with a communication strand and without, and under seeds.
void ExpectRunsInline(const Program& program, int ranks) {
  for (const std::int64_t inline_bytes : {0, 1 << 30}) {
    SpawnOptions options = Ranks(ranks);
    options.inline_bytes = inline_bytes;
    const absl::Status status = Spawn(program, options);
    EXPECT_TRUE(status.ok()) << status;
  }
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const SimulatedRun run = Simulate(program, Ranks(ranks), {seed});
    EXPECT_TRUE(run.status.ok()) << "seed " << seed << ": " << run.status;
  }
}

struct Maker : nn::Net {
  nn::Linear& first = Add<nn::Linear>("first", 4, 8);
  nn::Linear& second = Add<nn::Linear>("second", 8, 6);
  Var Forward(Var x) override { return second(first(x).Relu()); }
};

struct Judge : nn::Net {
  nn::Linear& hidden = Add<nn::Linear>("hidden", 6, 8);
  nn::Linear& out = Add<nn::Linear>("out", 8, 1);
  Var Forward(Var x) override { return out(hidden(x).Relu()); }
};

struct Chain : nn::Net {
  Maker& a = Add<Maker>("a");
  Judge& b = Add<Judge>("b");
  Var Forward(Var x) override { return b(a(x)); }
};

// Several buckets each.
DDPOptions BucketsOfFewBytes() {
  DDPOptions options;
  options.first_bucket_mb = options.bucket_cap_mb = 0.0001;
  return options;
}

std::vector<float> ValuesOf(const std::vector<nn::Parameter*>& parameters) {
  std::vector<float> values;
  for (const nn::Parameter* parameter : parameters) {
    const auto span = parameter->value.span<float>();
    values.insert(values.end(), span.begin(), span.end());
  }
  return values;
}

void SetGradOf(const DDP& ddp, bool requires_grad) {
  for (nn::Parameter* parameter : ddp.Parameters()) {
    parameter->requires_grad = requires_grad;
  }
}

// Treatment of the discriminator in the generator's backward.
enum class Loss { kDiscarded, kUnsynced, kFrozen };

// Trains as PyTorch's DCGAN example, and returns all parameters. A frozen
// discriminator is no model of the generator's loss.
std::vector<float> TrainGan(Rank& rank, Loss discriminator) {
  DDP net_g(rank.Make<Maker>(), BucketsOfFewBytes());
  DDP net_d(rank.Make<Judge>(), BucketsOfFewBytes());
  Adam opt_g(net_g, nn::AdamWDefaults()), opt_d(net_d, nn::AdamWDefaults());
  const std::vector<float> before = ValuesOf(net_g.Parameters());
  for (int step = 0; step < 3; ++step) {
    const auto draw = [&](std::int64_t columns, int key) {
      Var x = rank.Zeros({5, columns});
      for (std::int64_t i = 0; i < x.numel(); ++i) {
        x.tensor().data<float>()[i] =
            static_cast<float>(
                (i * 7 + key * 5 + step * 3 + rank.number() * 11) % 13) /
                13 -
            0.4f;
      }
      return x;
    };
    const Var real = rank.Ones({5, 1}), fake = rank.Zeros({5, 1});
    const Var noise = draw(4, 1);
    opt_d.ZeroGrad();
    nn::MeanSquaredError(net_d(draw(6, 2)), real).Backward();
    nn::MeanSquaredError(net_d(net_g(noise).Detached()), fake).Backward();
    opt_d.Step();
    opt_g.ZeroGrad();
    std::optional<DDP::Unsynced> unsynced;
    if (discriminator == Loss::kUnsynced) unsynced.emplace(net_d.core());
    if (discriminator == Loss::kFrozen) SetGradOf(net_d, false);
    const Var judged = net_d(net_g(noise));
    nn::MeanSquaredError(judged, real).Backward();
    SetGradOf(net_d, true);
    opt_g.Step();
  }
  std::vector<float> values = ValuesOf(net_g.Parameters());
  EXPECT_NE(values, before);
  const std::vector<float> others = ValuesOf(net_d.Parameters());
  values.insert(values.end(), others.begin(), others.end());
  return values;
}

TEST(TwoModelsTest, GanIsThatWithAFrozenDiscriminator) {
  for (const int ranks : {1, 2}) {
    ExpectRunsInline(
        [](Rank& rank) {
          const std::vector<float> frozen = TrainGan(rank, Loss::kFrozen);
          EXPECT_EQ(TrainGan(rank, Loss::kDiscarded), frozen);
          EXPECT_EQ(TrainGan(rank, Loss::kUnsynced), frozen);
        },
        ranks);
  }
}

Sgd Momentum(const DDP& ddp) {
  nn::SgdOptions options;
  options.lr = 0.1;
  options.momentum = 0.9;
  return Sgd(ddp, options);
}

// Both models learn from one loss, whose optimizers step in either order.
void TrainChain(Rank& rank, bool in_backward) {
  auto model = rank.Make<Chain>();
  auto a = rank.Make<Maker>();
  auto b = rank.Make<Judge>();
  const std::vector<nn::Parameter*> whole = model.Parameters();
  std::vector<nn::Parameter*> parts = a.Parameters();
  for (nn::Parameter* parameter : b.Parameters()) parts.push_back(parameter);
  ASSERT_EQ(whole.size(), parts.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto from = whole[i]->value.span<float>();
    std::copy(from.begin(), from.end(), parts[i]->value.data<float>());
  }
  DDP ddp(model, BucketsOfFewBytes()), ddp_a(a, BucketsOfFewBytes()),
      ddp_b(b, BucketsOfFewBytes());
  Sgd sgd = Momentum(ddp), sgd_a = Momentum(ddp_a), sgd_b = Momentum(ddp_b);
  if (in_backward) ddp_a.StepInBackward(sgd_a);
  const std::vector<float> before = ValuesOf(whole);
  for (int step = 0; step < 3; ++step) {
    const Var x = rank.Randn({5, 4}), y = rank.Randn({5, 1});
    sgd.ZeroGrad();
    nn::MeanSquaredError(ddp(x), y).Backward();
    sgd.Step();
    sgd_a.ZeroGrad();
    sgd_b.ZeroGrad();
    nn::MeanSquaredError(ddp_b(ddp_a(x)), y).Backward();
    // Another order on each rank: a wait for one model drives both.
    if ((rank.number() + step) % 2 == 0) {
      sgd_a.Step();
      sgd_b.Step();
    } else {
      sgd_b.Step();
      sgd_a.Step();
    }
    ASSERT_EQ(ValuesOf(parts), ValuesOf(whole)) << "step " << step;
  }
  EXPECT_NE(ValuesOf(whole), before);
}

TEST(TwoModelsTest, BothLearnAsOneModule) {
  for (const int ranks : {1, 2}) {
    for (const bool in_backward : {false, true}) {
      ExpectRunsInline([&](Rank& rank) { TrainChain(rank, in_backward); },
                       ranks);
    }
  }
}

TEST(TwoModelsTest, RefusesExactMeanAndJoin) {
  const auto fails = [](bool exact_mean, bool join) {
    const absl::Status status = Spawn(
        [=](Rank& rank) {
          DDPOptions options;
          options.exact_mean = exact_mean;
          DDP a(rank.Make<Maker>()), b(rank.Make<Judge>(), options);
          std::optional<JoinGuard> guard;
          if (join) guard.emplace(a, JoinOptions());
          nn::MeanSquaredError(b(a(rank.Randn({5, 4}))), rank.Ones({5, 1}))
              .Backward();
        },
        Ranks(2));
    return std::string(status.message());
  };
  EXPECT_THAT(fails(true, false),
              HasSubstr("exact_mean divides the gradients of one model by the "
                        "counts of its own losses, and this loss depends on "
                        "several models; leave out exact_mean, or put the "
                        "models into one module"));
  EXPECT_THAT(fails(false, true),
              HasSubstr("the loss depends on the parameters of several models, "
                        "and one of them is under Join(), where a rank that "
                        "has ended could not follow; give Join() all of them, "
                        "detach the output of one, or put them into one "
                        "module"));
}

// A hook of one model of the loss must leave the other one alone, which is in
// the midst of its backward or step.
TEST(TwoModelsTest, AHookMayNotCallTheOtherModel) {
  using Call = std::function<void(DDP & other, Sgd & sgd)>;
  const std::vector<Call> calls = {
      [](DDP&, Sgd& sgd) { sgd.Step(); },
      [](DDP&, Sgd& sgd) { sgd.ZeroGrad(); },
      [](DDP& other, Sgd&) { AverageGradients(other); },
      [](DDP& other, Sgd&) {
        nn::Sum(other.rank().Ones({5, 4})).Backward();
      },
  };
  // `last`: whether the hook is that of the model that has gradients last.
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (const bool last : {true, false}) {
      const Program program = [&](Rank& rank) {
        auto a = rank.Make<Maker>();
        auto b = rank.Make<Judge>();
        DDP ddp_a(a, BucketsOfFewBytes()), ddp_b(b, BucketsOfFewBytes());
        Sgd sgd_a = Momentum(ddp_a), sgd_b = Momentum(ddp_b);
        DDP& hooked = last ? ddp_a : ddp_b;
        DDP& other = last ? ddp_b : ddp_a;
        Sgd& sgd = last ? sgd_b : sgd_a;
        hooked.RegisterCommHook([&](Group& group, GradBucket& bucket) {
          calls[i](other, sgd);
          return AllReduceHook(group, bucket);
        });
        nn::MeanSquaredError(ddp_b(ddp_a(rank.Randn({5, 4}))),
                             rank.Randn({5, 1}))
            .Backward();
        sgd_a.Step();
        sgd_b.Step();
      };
      const std::string refused = i < 3 ? "a communication hook may not run "
                                          "backwards, steps or ZeroGrad() of "
                                          "another model"
                                        : "a NoGrad guard takes it away";
      EXPECT_THAT(std::string(Spawn(program, Ranks(2)).message()),
                  HasSubstr(refused))
          << "call " << i << ", last " << last;
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        EXPECT_THAT(
            std::string(Simulate(program, Ranks(2), {seed}).status.message()),
            HasSubstr(refused))
            << "call " << i << ", seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace troupe

// Communication hooks of a DDP, in threads and under seeds.

#include "troupe/comm_hook.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kRanks = 2;
constexpr int kSteps = 4;

struct Toy : nn::Net {
  nn::Linear& first = Add<nn::Linear>("first", 10, 8);
  nn::Linear& second = Add<nn::Linear>("second", 8, 5);
  Var Forward(Var x) override { return second(first(x).Relu()); }
};

SpawnOptions TwoRanks() {
  SpawnOptions options;
  options.ranks = kRanks;
  return options;
}

// A bucket for each parameter.
DDPOptions SmallBuckets() {
  DDPOptions options;
  options.first_bucket_mb = options.bucket_cap_mb = 1e-5;
  return options;
}

std::vector<float> HookedValuesOf(const Trainable& model) {
  std::vector<float> values;
  for (const nn::Parameter* parameter : model.Parameters()) {
    const float* const begin = parameter->value.data<float>();
    values.insert(values.end(), begin, begin + parameter->value.numel());
  }
  return values;
}

void Train(Rank& rank, const Trainable& model, Optimizer& optimizer) {
  for (int i = 0; i < kSteps; ++i) {
    optimizer.ZeroGrad();
    nn::MeanSquaredError(model(rank.Randn({16, 10})), rank.Randn({16, 5}))
        .Backward();
    optimizer.Step();
  }
}

// Returns a program that trains with what `prepare` adds to the DDP, and writes
// the parameters of each rank.
Program Trained(const std::function<void(DDP& ddp)>& prepare,
                std::vector<std::vector<float>>* values,
                const DDPOptions& options = SmallBuckets()) {
  values->resize(kRanks);
  return [=](Rank& rank) {
    auto model = rank.Make<Toy>();
    DDP ddp(model, options);
    if (prepare) prepare(ddp);
    Sgd sgd(ddp, {/*lr=*/0.1, /*momentum=*/0.9});
    Train(rank, ddp, sgd);
    (*values)[rank.number()] = HookedValuesOf(ddp);
  };
}

std::vector<std::vector<float>> InThreads(
    const std::function<void(DDP& ddp)>& prepare,
    const DDPOptions& options = SmallBuckets()) {
  std::vector<std::vector<float>> values;
  const absl::Status status =
      Spawn(Trained(prepare, &values, options), TwoRanks());
  EXPECT_TRUE(status.ok()) << status;
  return values;
}

void Divide(Tensor buffer, float divisor) {
  for (float& g : buffer.span<float>()) g /= divisor;
}

void SumAndDivide(Group& group, GradBucket& bucket) {
  group.AllReduce(bucket.buffer());
  Divide(bucket.buffer(), group.size());
}

BucketFuture SumThenDivide(Group& group, GradBucket& bucket) {
  return BucketFuture(group.StartAllReduce(bucket.buffer()),
                      [buffer = bucket.buffer(), size = group.size()] {
                        Divide(buffer, size);
                      });
}

// The two halves of an all-reduce; the buffer parts evenly.
void ScatterAndGather(Group& group, GradBucket& bucket) {
  const Tensor& buffer = bucket.buffer();
  const std::int64_t block = buffer.numel() / group.size();
  ASSERT_EQ(buffer.numel(), block * group.size());
  const Var sum = group.ReduceScatter(
      buffer.FlatView(0, nn::Shape{group.size(), block}), ReduceOp::kAvg);
  const Var all = group.AllGather(sum);
  const float* const from = all.tensor().data<float>();
  std::copy(from, from + buffer.numel(), bucket.buffer().span<float>().begin());
}

TEST(CommHookTest, HooksThatAverageChangeNoBit) {
  const auto want = InThreads(nullptr);
  ASSERT_EQ(want[0], want[1]);
  const std::vector<std::function<void(DDP&)>> hooks = {
      [](DDP& ddp) { ddp.RegisterCommHook(AllReduceHook); },
      [](DDP& ddp) { ddp.RegisterCommHook(SumAndDivide); },
      [](DDP& ddp) { ddp.RegisterCommHook(SumThenDivide); },
      [](DDP& ddp) { ddp.RegisterCommHook(ScatterAndGather); },
  };
  for (std::size_t i = 0; i < hooks.size(); ++i) {
    EXPECT_EQ(InThreads(hooks[i]), want) << "hook " << i;
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
      std::vector<std::vector<float>> have;
      const SimulatedRun run =
          Simulate(Trained(hooks[i], &have), TwoRanks(), {seed});
      ASSERT_TRUE(run.status.ok()) << run.status;
      ASSERT_EQ(have, want) << "hook " << i << ", seed " << seed;
    }
  }
}

// Updates divide what hooks add up, if DDP has exact_mean.
TEST(CommHookTest, SumsOfExactMeanAreDividedByUpdates) {
  DDPOptions options = SmallBuckets();
  options.exact_mean = true;
  const auto want = InThreads(nullptr, options);
  const auto all_reduce = [](DDP& ddp) { ddp.RegisterCommHook(AllReduceHook); };
  EXPECT_EQ(InThreads(all_reduce, options), want);
  const auto sum = [](DDP& ddp) {
    ddp.RegisterCommHook([](Group& group, GradBucket& bucket) {
      EXPECT_EQ(bucket.op(), ReduceOp::kSum);
      group.AllReduce(bucket.buffer());
    });
  };
  EXPECT_EQ(InThreads(sum, options), want);
}

// Each bucket is updated as soon as its hook has ended.
TEST(CommHookTest, UpdatesInBackwardTakeWhatHooksLeave) {
  std::vector<std::vector<float>> have(kRanks);
  const Program program = [&have](Rank& rank) {
    auto model = rank.Make<Toy>();
    DDP ddp(model, SmallBuckets());
    ddp.RegisterCommHook(SumThenDivide);
    Sgd sgd(ddp, {/*lr=*/0.1, /*momentum=*/0.9});
    ddp.StepInBackward(sgd);
    Train(rank, ddp, sgd);
    have[rank.number()] = HookedValuesOf(ddp);
  };
  const absl::Status status = Spawn(program, TwoRanks());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(have, InThreads(nullptr));
}

// A hook that does nothing leaves each rank its own gradients.
TEST(CommHookTest, AHookMayKeepGradientsLocal) {
  std::vector<std::vector<float>> alone(kRanks);
  const Program program = [&alone](Rank& rank) {
    auto model = rank.Make<Toy>();
    Sgd sgd(model, {/*lr=*/0.1, /*momentum=*/0.9});
    Train(rank, model, sgd);
    alone[rank.number()] = HookedValuesOf(model);
  };
  ASSERT_TRUE(Spawn(program, TwoRanks()).ok());
  const auto local = InThreads(
      [](DDP& ddp) { ddp.RegisterCommHook([](Group&, GradBucket&) {}); });
  EXPECT_NE(local[0], local[1]);
  EXPECT_EQ(local, alone);
}

// Returns the gradients of rank 0 after one backward.
std::vector<float> Gradients(const std::function<void(DDP& ddp)>& prepare) {
  std::vector<float> all;
  const Program program = [&](Rank& rank) {
    auto model = rank.Make<Toy>();
    DDP ddp(model, SmallBuckets());
    prepare(ddp);
    Sgd sgd(ddp, {/*lr=*/0.1});
    nn::MeanSquaredError(ddp(rank.Randn({16, 10})), rank.Randn({16, 5}))
        .Backward();
    sgd.Step();  // keeps the gradients
    if (rank.number() != 0) return;
    for (const nn::Parameter* parameter : ddp.Parameters()) {
      const float* const grads = parameter->grad.data<float>();
      all.insert(all.end(), grads, grads + parameter->grad.numel());
    }
  };
  const absl::Status status = Spawn(program, TwoRanks());
  EXPECT_TRUE(status.ok()) << status;
  return all;
}

TEST(CommHookTest, AHookMayQuantise) {
  const std::vector<float> exact = Gradients([](DDP&) {});
  const std::vector<float> quantised = Gradients([](DDP& ddp) {
    ddp.RegisterCommHook([](Group& group, GradBucket& bucket) {
      for (float& g : bucket.buffer().span<float>()) g = std::round(g * 256);
      group.AllReduce(bucket.buffer());
      Divide(bucket.buffer(), 256 * group.size());
    });
  });
  ASSERT_EQ(quantised.size(), exact.size());
  ASSERT_FALSE(exact.empty());
  int rounded = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(quantised[i], exact[i], 0.5 / 256 + 1e-6) << i;
    const float count = quantised[i] * 512;  // the mean of two multiples
    EXPECT_EQ(count, std::round(count)) << i;
    rounded += quantised[i] != exact[i];
  }
  EXPECT_GT(rounded, 0);
}

// Calls, as "0:second.bias".
TEST(CommHookTest, BucketsComeInOrderWithTheirParameters) {
  std::vector<std::string> calls[kRanks];
  const Program program = [&calls](Rank& rank) {
    auto model = rank.Make<Toy>();
    DDP ddp(model, SmallBuckets());
    ddp.RegisterCommHook([&](Group& group, GradBucket& bucket) {
      EXPECT_EQ(group.ranks(), (std::vector<int>{0, 1}));
      EXPECT_EQ(bucket.is_last(), bucket.index() == 3);
      const std::vector<Tensor> gradients = bucket.gradients();
      ASSERT_EQ(gradients.size(), bucket.parameters().size());
      std::vector<std::string> names;
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        const nn::Parameter& parameter = *bucket.parameters()[i];
        names.push_back(parameter.name);
        EXPECT_EQ(gradients[i].shape(), parameter.shape);
        // It lies in the buffer.
        const float* const begin = bucket.buffer().data<float>();
        EXPECT_GE(gradients[i].data<float>(), begin);
        EXPECT_LE(gradients[i].data<float>() + gradients[i].numel(),
                  begin + bucket.buffer().numel());
      }
      EXPECT_FALSE(rank.records());
      calls[rank.number()].push_back(
          absl::StrCat(bucket.index(), ":", absl::StrJoin(names, ",")));
    });
    Sgd sgd(ddp, {/*lr=*/0.1});
    const auto backward = [&] {
      nn::MeanSquaredError(ddp(rank.Randn({4, 10})), rank.Randn({4, 5}))
          .Backward();
    };
    {
      auto unsynced = ddp.NoSync();
      backward();
    }
    EXPECT_TRUE(calls[rank.number()].empty());
    backward();
    sgd.Step();
  };
  const absl::Status status = Spawn(program, TwoRanks());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(calls[0],
            (std::vector<std::string>{"0:second.bias", "1:second.weight",
                                      "2:first.bias", "3:first.weight"}));
  EXPECT_EQ(calls[1], calls[0]);
}

// Buckets of limits of their own, and delayed parameters behind them.
TEST(CommHookTest, BucketsAreThoseOfTheOptions) {
  DDPOptions options;
  // Three gradients of 4 bytes or more each do not fit into the first bucket.
  options.bucket_cap_mb_list = {1e-5, 1};
  options.delay_all_reduce_named_params = {"second.weight"};
  std::vector<std::string> buckets;
  const Program program = [&](Rank& rank) {
    auto model = rank.Make<Toy>();
    DDP ddp(model, options);
    ddp.RegisterCommHook([&](Group& group, GradBucket& bucket) {
      if (rank.number() == 0) buckets.push_back(bucket.ToString());
      return AllReduceHook(group, bucket);
    });
    Sgd sgd(ddp, {/*lr=*/0.1});
    nn::MeanSquaredError(ddp(rank.Randn({4, 10})), rank.Randn({4, 5}))
        .Backward();
    sgd.Step();
  };
  const absl::Status status = Spawn(program, TwoRanks());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(buckets,
            (std::vector<std::string>{"bucket 0 (second.bias)",
                                      "bucket 1 (first.bias, first.weight)",
                                      "bucket 2 (second.weight)"}));
  // The buckets change no bit.
  EXPECT_EQ(InThreads(nullptr, options), InThreads(nullptr));
}

TEST(CommHookTest, OneRankCallsItsHook) {
  int calls = 0;
  const Program program = [&calls](Rank& rank) {
    auto model = rank.Make<Toy>();
    DDP ddp(model);
    ddp.RegisterCommHook([&calls](Group& group, GradBucket& bucket) {
      ++calls;
      return AllReduceHook(group, bucket);
    });
    Sgd sgd(ddp, {/*lr=*/0.1});
    Train(rank, ddp, sgd);
  };
  const absl::Status status = Spawn(program, 1);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(calls, kSteps);
}

// Returns the error of a program that trains with what `prepare` adds.
std::string ErrorOf(const std::function<void(Rank&, DDP&, Sgd&)>& prepare,
                    const DDPOptions& options = SmallBuckets()) {
  const Program program = [&](Rank& rank) {
    auto model = rank.Make<Toy>();
    DDP ddp(model, options);
    Sgd sgd(ddp, {/*lr=*/0.1});
    prepare(rank, ddp, sgd);
    Train(rank, ddp, sgd);
  };
  return std::string(Spawn(program, TwoRanks()).message());
}

TEST(CommHookTest, AHookThatThrowsIsNamed) {
  const auto throws = [](Rank& rank, DDP& ddp, Sgd&) {
    ddp.RegisterCommHook([&rank](Group& group, GradBucket& bucket) {
      if (rank.number() == 1 && bucket.index() == 2) {
        throw std::runtime_error("out of luck");
      }
      return AllReduceHook(group, bucket);
    });
  };
  EXPECT_THAT(ErrorOf(throws),
              HasSubstr("rank 1: communication hook, bucket 2 (first.bias): "
                        "out of luck"));
  const auto throws_at_end = [](Rank& rank, DDP& ddp, Sgd&) {
    ddp.RegisterCommHook([&rank](Group& group, GradBucket& bucket) {
      return BucketFuture(AllReduceHook(group, bucket), [&rank, bucket] {
        if (rank.number() == 0 && bucket.is_last()) {
          throw std::runtime_error("too late");
        }
      });
    });
  };
  EXPECT_THAT(ErrorOf(throws_at_end),
              HasSubstr("rank 0: communication hook, bucket 3 (first.weight): "
                        "too late"));
}

// Ranks whose hooks make other calls are both named.
TEST(CommHookTest, OtherCallsOnOtherRanksAreNamed) {
  const auto differ = [](Rank& rank, DDP& ddp, Sgd&) {
    ddp.RegisterCommHook([&rank](Group& group, GradBucket& bucket) {
      if (rank.number() == 0) {
        group.AllReduce(bucket.buffer());
      } else {
        group.Broadcast(bucket.buffer(), /*root=*/0);
      }
    });
  };
  EXPECT_THAT(ErrorOf(differ),
              AllOf(HasSubstr("communication hook, bucket 0 (second.bias)"),
                    HasSubstr("rank 0 started all_reduce"),
                    HasSubstr("rank 1 started broadcast")));
}

TEST(CommHookTest, WrongUseIsNamed) {
  const auto twice = [](Rank&, DDP& ddp, Sgd&) {
    ddp.RegisterCommHook(AllReduceHook);
    ddp.RegisterCommHook(AllReduceHook);
  };
  EXPECT_THAT(ErrorOf(twice), HasSubstr("has a communication hook already"));
  const auto late = [](Rank& rank, DDP& ddp, Sgd&) {
    nn::MeanSquaredError(ddp(rank.Randn({4, 10})), rank.Randn({4, 5}))
        .Backward();
    ddp.RegisterCommHook(AllReduceHook);
  };
  EXPECT_THAT(ErrorOf(late), HasSubstr("discard the gradients with ZeroGrad"));
  DDPOptions rounded = SmallBuckets();
  rounded.reduction_dtype = nn::DType::kBF16;
  const auto once = [](Rank&, DDP& ddp, Sgd&) {
    ddp.RegisterCommHook(AllReduceHook);
  };
  EXPECT_THAT(ErrorOf(once, rounded), HasSubstr("leave out reduction_dtype"));
  DDPOptions delayed;
  delayed.delay_all_reduce_named_params = {"second.wieght"};
  EXPECT_THAT(ErrorOf(once, delayed),
              HasSubstr("\"second.wieght\" is none that the model trains; the "
                        "nearest are second.weight"));
  DDPOptions limits;
  limits.bucket_cap_mb_list = {1, 0};
  EXPECT_THAT(ErrorOf(once, limits),
              HasSubstr("DDPOptions.bucket_cap_mb_list is above 0"));
  const auto steps = [](Rank&, DDP& ddp, Sgd& sgd) {
    ddp.RegisterCommHook([&sgd](Group&, GradBucket&) { sgd.Step(); });
  };
  EXPECT_THAT(ErrorOf(steps), HasSubstr("communication hook may not run"));
  const auto zeroes = [](Rank&, DDP& ddp, Sgd& sgd) {
    ddp.RegisterCommHook([&sgd](Group&, GradBucket&) { sgd.ZeroGrad(); });
  };
  EXPECT_THAT(ErrorOf(zeroes), HasSubstr("communication hook may not run"));
}

}  // namespace
}  // namespace troupe

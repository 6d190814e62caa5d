// Several models under one Join(): a GAN whose ranks have different numbers of
// batches, in threads, with a communication strand, and under seeds.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/batch_norm.h"
#include "tests/troupe/replicas.h"
#include "troupe/join.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Generator : nn::Net {
  nn::Linear& first = Add<nn::Linear>("first", 4, 8);
  nn::BatchNorm1d& norm = Add<nn::BatchNorm1d>("norm", 8);
  nn::Linear& second = Add<nn::Linear>("second", 8, 6);
  Var Forward(Var x) override {
    x = first(x);
    return second((norms ? norm(x) : x).Relu());
  }
  bool norms = false;
};

struct Discriminator : nn::Net {
  nn::Linear& hidden = Add<nn::Linear>("hidden", 6, 8);
  nn::BatchNorm1d& norm = Add<nn::BatchNorm1d>("norm", 8);
  nn::Linear& out = Add<nn::Linear>("out", 8, 1);
  Var Forward(Var x) override {
    x = hidden(x);
    return out((norms ? norm(x) : x).Relu());
  }
  bool norms = false;
};

// Loops of a GAN: the discriminator gets its gradients of the generator's loss
// and discards them; does not reduce them; or is frozen meanwhile.
enum class Of { kDiscarded, kUnsynced, kFrozen };

void SetRequiresGrad(const DDP& ddp, bool requires_grad) {
  for (nn::Parameter* parameter : ddp.Parameters()) {
    parameter->requires_grad = requires_grad;
  }
}

// kOwn: the generator has a norm; kSynced: both have synchronised ones.
enum class Norms { kNone, kOwn, kSynced };

struct Gan {
  Of of = Of::kDiscarded;
  Norms norms = Norms::kNone;
  // Otherwise a rank itself goes on with batches of 0 rows.
  bool joined = true;
  JoinOptions options;
  int first_batch = 0;  // number of rank 0's first batch; rank 1's is 10 more
  int batches[2] = {3, 5};
};

// Trains as PyTorch's DCGAN example, on batches that depend on their number and
// the rank; returns all parameters.
Program Trained(const Gan& gan, std::vector<float>* values) {
  return [=](Rank& rank) {
    auto generator = std::make_unique<Generator>();
    auto discriminator = std::make_unique<Discriminator>();
    generator->norms = gan.norms != Norms::kNone;
    discriminator->norms = gan.norms == Norms::kSynced;
    const auto place = [&](std::unique_ptr<nn::Module> module) {
      if (gan.norms != Norms::kSynced) return rank.Place(std::move(module));
      return rank.Place(nn::ConvertSyncBatchNorm(std::move(module)));
    };
    DDPOptions small;
    small.first_bucket_mb = small.bucket_cap_mb = 0.0001;
    DDP net_g(place(std::move(generator)), small);
    DDP net_d(place(std::move(discriminator)), small);
    Adam opt_g(net_g, nn::AdamWDefaults());
    Sgd opt_d(net_d, {/*lr=*/0.1, /*momentum=*/0.9});
    opt_d.Schedule(LrSchedule::Exponential(0.5));
    const int batches = gan.batches[rank.number()];
    const auto train = [&](int from, int to, int rows) {
      for (int i = from; i < to; ++i) {
        const int number = gan.first_batch + 10 * rank.number() + i;
        const Var images = rank.Zeros({rows, 6}), noise = rank.Zeros({rows, 4});
        Fill(images, absl::StrCat("gan/images", number), 1);
        Fill(noise, absl::StrCat("gan/noise", number), 1);
        const Var real = rank.Ones({rows, 1}), fake = rank.Zeros({rows, 1});
        opt_d.ZeroGrad();
        {
          // Doubled gradients of one rank of two add up to the same bits.
          auto first = net_d.NoSync();
          nn::MeanSquaredError(net_d(images), real).Backward();
        }
        nn::MeanSquaredError(net_d(net_g(noise).Detached()), fake).Backward();
        opt_d.Step();
        opt_g.ZeroGrad();
        std::optional<DDP::Unsynced> unsynced;
        if (gan.of == Of::kUnsynced) unsynced.emplace(net_d.core());
        if (gan.of == Of::kFrozen) SetRequiresGrad(net_d, false);
        nn::MeanSquaredError(net_d(net_g(noise)), real).Backward();
        SetRequiresGrad(net_d, true);
        opt_g.Step();
      }
    };
    const int steps =
        rank.size() == 1 ? batches : std::max(gan.batches[0], gan.batches[1]);
    if (gan.joined) {
      auto joined = Join({net_g, net_d}, gan.options);
      train(0, batches, 5);
    } else {
      train(0, batches, 5);
      train(batches, steps, 0);
    }
    ExpectEqualReplicas(rank, net_g, opt_g, steps);
    ExpectEqualReplicas(rank, net_d, opt_d, steps);
    EXPECT_EQ(opt_d.lr(), 0.1 * std::pow(0.5, steps));
    if (rank.number() != 0) return;
    *values = ValuesOf(net_g);
    const std::vector<float> others = ValuesOf(net_d);
    values->insert(values->end(), others.begin(), others.end());
  };
}

std::vector<float> InThreads(const Gan& gan, int ranks,
                             std::int64_t inline_bytes = 1 << 30) {
  std::vector<float> values;
  SpawnOptions options = Ranks(ranks);
  options.inline_bytes = inline_bytes;
  const absl::Status status = Spawn(Trained(gan, &values), options);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_FALSE(values.empty());
  return values;
}

// Rank 0 has no batch: a GAN of rank 1 alone.
TEST(JoinModelsTest, ARankWithoutBatchesChangesNoBit) {
  for (const Of of : {Of::kDiscarded, Of::kUnsynced, Of::kFrozen}) {
    for (const Norms norms : {Norms::kNone, Norms::kOwn, Norms::kSynced}) {
      Gan one;
      one.of = of;
      one.norms = norms;
      one.first_batch = 10;
      one.batches[0] = 4;
      const std::vector<float> want = InThreads(one, 1);
      Gan two;
      two.of = of;
      two.norms = norms;
      two.batches[0] = 0;
      two.batches[1] = 4;
      two.options.divide_by_initial_world_size = false;
      EXPECT_EQ(InThreads(two, 2), want) << static_cast<int>(of);
      // The mean over all ranks halves the gradients.
      two.options.divide_by_initial_world_size = true;
      EXPECT_NE(InThreads(two, 2), want);
    }
  }
}

// Expects the values of `gan` on two ranks under 20 seeds.
void ExpectInEverySimulation(const Gan& gan, const std::vector<float>& want) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<float> values;
    const SimulatedRun run = Simulate(Trained(gan, &values), Ranks(2), {seed});
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(values, want) << "seed " << seed;
  }
}

TEST(JoinModelsTest, SeedsAndStrandsChangeNoBit) {
  for (const Norms norms : {Norms::kNone, Norms::kOwn, Norms::kSynced}) {
    Gan gan;
    gan.norms = norms;
    const std::vector<float> want = InThreads(gan, 2);
    EXPECT_EQ(InThreads(gan, 2, /*inline_bytes=*/0), want);
    for (const Of of : {Of::kUnsynced, Of::kFrozen}) {
      Gan other = gan;
      other.of = of;
      EXPECT_EQ(InThreads(other, 2), want) << static_cast<int>(of);
    }
    ExpectInEverySimulation(gan, want);
  }
}

// A rank that has ended does what it would do with batches of 0 rows.
TEST(JoinModelsTest, SynchronisedNormsHaveTheBitsOfEmptyBatches) {
  for (const Of of : {Of::kDiscarded, Of::kUnsynced, Of::kFrozen}) {
    Gan gan;
    gan.of = of;
    gan.norms = Norms::kSynced;
    gan.joined = false;
    const std::vector<float> want = InThreads(gan, 2);
    gan.joined = true;
    EXPECT_EQ(InThreads(gan, 2), want) << static_cast<int>(of);
    ExpectInEverySimulation(gan, want);
  }
}

// --- Errors ---

std::string ErrorOf(const Program& program) {
  return std::string(Spawn(program, Ranks(2)).message());
}

TEST(JoinModelsTest, AnotherOrderIsNamed) {
  const Program program = [](Rank& rank) {
    DDP a(rank.Make<Generator>()), b(rank.Make<Discriminator>());
    auto joined = Join({a, b});
    const auto learn = [&rank](const DDP& model, int columns) {
      nn::Sum(model(rank.Ones({2, columns}))).Backward();
    };
    learn(a, 4);
    if (rank.number() == 0) learn(a, 4);
    learn(b, 6);
  };
  const auto differ =
      AllOf(HasSubstr("rank 0 is at a forward of model 1 (first.weight, ...) "
                      "after 0 and 0 steps, rank 1 is at a forward of model 2 "
                      "(hidden.weight, ...) after 0 and 0 steps; under Join() "
                      "all ranks that have not ended must call forward"));
  EXPECT_THAT(ErrorOf(program), differ);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_THAT(
        std::string(Simulate(program, Ranks(2), {seed}).status.message()),
        differ);
  }
  // One rank reduces no gradients of a model, or freezes one.
  EXPECT_THAT(ErrorOf([](Rank& rank) {
                DDP a(rank.Make<Generator>()), b(rank.Make<Discriminator>());
                auto joined = Join({a, b});
                std::optional<DDP::Unsynced> unsynced;
                if (rank.number() == 0) unsynced.emplace(a.core());
                nn::Sum(b(a(rank.Ones({2, 4})))).Backward();
              }),
              HasSubstr("rank 0 is at a forward of model 1 (first.weight, "
                        "...) under NoSync() after 0 and 0 steps, rank 1 is at "
                        "a forward of model 1 (first.weight, ...) after 0 and "
                        "0 steps"));
  EXPECT_THAT(ErrorOf([](Rank& rank) {
                DDP a(rank.Make<Generator>()), b(rank.Make<Discriminator>());
                auto joined = Join({a, b});
                SetRequiresGrad(b, rank.number() == 0);
                nn::Sum(b(a(rank.Ones({2, 4})))).Backward();
              }),
              HasSubstr("rank 1 is at a forward of model 2 (hidden.weight, "
                        "...), frozen after 0 and 0 steps"));
  EXPECT_THAT(ErrorOf([](Rank& rank) {
                DDP a(rank.Make<Generator>()), b(rank.Make<Discriminator>());
                auto joined = Join({a, b});
                const Var x = a(rank.Ones({2, 4}));
                nn::Sum(b(rank.number() == 0 ? x : x.Detached())).Backward();
              }),
              HasSubstr("rank 1 is at a forward of model 2 (hidden.weight, "
                        "...) after 0 and 0 steps, where no gradients go to "
                        "its input; under Join()"));
}

TEST(JoinModelsTest, WrongUseIsNamed) {
  EXPECT_THAT(ErrorOf([](Rank& rank) {
                DDP a(rank.Make<Generator>());
                auto joined = Join({a, a});
              }),
              AllOf(HasSubstr("Join() at join_models_test.cc:"),
                    HasSubstr("a model is given twice")));
  EXPECT_THAT(ErrorOf([](Rank& rank) {
                DDP a(rank.Make<Generator>()), b(rank.Make<Discriminator>());
                auto joined = Join({a, b});
                const Var x = rank.Ones({2, 6});
                const Var first = b(x), second = b(x);
                nn::Sum(rank.number() == 0 ? first : second).Backward();
              }),
              HasSubstr("rank 1 is at a backward of model 2 (hidden.weight, "
                        "...) after 0 and 0 steps, where its loss depends on "
                        "other outputs of model 2 (hidden.weight, ...)"));
  EXPECT_THAT(ErrorOf([](Rank& rank) {
                DDP a(rank.Make<Generator>()), b(rank.Make<Discriminator>());
                auto joined = Join({a, b});
                Var last;
                for (int i = 0; i < 63; ++i) last = b(rank.Ones({2, 6}));
                nn::Sum(last).Backward();
              }),
              HasSubstr("model 2 (hidden.weight, ...) has had 63 forwards "
                        "since the last backward, and the loss depends on "
                        "some of them alone"));
  EXPECT_THAT(
      ErrorOf([](Rank&) { auto joined = Join(std::vector<Trainable>()); }),
      HasSubstr("it takes 1 to 32 models, not 0"));
  EXPECT_THAT(ErrorOf([](Rank& rank) {
                DDP a(rank.Make<Generator>());
                auto joined = Join({a, rank.Make<Discriminator>()});
              }),
              HasSubstr("the model has no DDP"));
  EXPECT_THAT(ErrorOf([](Rank& rank) {
                DDP a(rank.Make<Generator>()), b(rank.Make<Discriminator>());
                auto joined = a.Join();
                auto another = b.Join();
              }),
              HasSubstr("give one Join() all models: Join({a, b})"));
}

TEST(JoinModelsTest, EarlyTerminationThrowsOnAllRanks) {
  const Program program = [](Rank& rank) {
    DDP a(rank.Make<Generator>()), b(rank.Make<Discriminator>());
    const absl::Status status = base::Try([&] {
      JoinOptions options;
      options.throw_on_early_termination = true;
      auto joined = Join({a, b}, options);
      for (int i = 0; i < kBatches[rank.number()]; ++i) {
        nn::Sum(b(a(rank.Ones({2, 4})))).Backward();
      }
    });
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  };
  ExpectRuns(program, 2);
}

}  // namespace
}  // namespace troupe

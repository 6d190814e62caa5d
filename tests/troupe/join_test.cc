// Ranks with different numbers of batches: synchronised norms, accumulated
// gradients, buffers, rates, unused parameters and errors.

#include "troupe/join.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/batch_norm.h"
#include "tests/troupe/replicas.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

struct Small : nn::Net {
  nn::Linear& fc1 = Add<nn::Linear>("fc1", 4, 6);
  nn::Linear& fc2 = Add<nn::Linear>("fc2", 6, 3);
  Var Forward(Var x) override { return fc2(fc1(x).Tanh()); }
};

struct NormedOnce : nn::Net {
  nn::BatchNorm1d& norm = Add<nn::BatchNorm1d>("norm", 3);
  nn::Linear& last = Add<nn::Linear>("last", 3, 2);
  Var Forward(Var x) override { return last(norm(x)); }
};

// Rows [begin, begin + rows) of step `step`.
Var RowsOf(Rank& rank, int step, int begin, int rows) {
  Var x = rank.Zeros({rows, 3});
  for (int i = 0; i < 3 * rows; ++i) {
    x.tensor().data<float>()[i] = (7 * (3 * begin + i) + 5 * step) % 11 - 5;
  }
  return x;
}

// Two ranks of 3 and 5 batches with exact_mean are one rank whose first three
// batches have the rows of both; the norms see them together, too.
TEST(JoinTest, SynchronisedNormsAndExactMeansAreThoseOfOneRank) {
  const auto trained = [](int ranks) {
    std::vector<float> values;
    const Program program = [&](Rank& rank) {
      auto model =
          rank.Place(nn::ConvertSyncBatchNorm(std::make_unique<NormedOnce>()));
      DDPOptions options;
      options.exact_mean = true;
      DDP ddp(model, options);
      Sgd sgd(ddp, {/*lr=*/0.1, /*momentum=*/0.9});
      {
        auto joined = ddp.Join();
        for (int step = 0; step < 5; ++step) {
          if (rank.size() == 2 && step == kBatches[rank.number()]) break;
          // Rank 1 of two has rows 0 to 3, rank 0 the next two, while it lasts.
          const bool second = rank.size() == 2 && rank.number() == 0;
          const int rows = second ? 2 : rank.size() == 1 && step < 3 ? 6 : 4;
          sgd.ZeroGrad();
          nn::MeanSquaredError(ddp(RowsOf(rank, step, second ? 4 : 0, rows)),
                               rank.Ones({rows, 2}))
              .Backward();
          sgd.Step();
        }
      }
      ExpectEqualReplicas(rank, ddp, sgd, /*steps=*/5);
      if (rank.number() != 0) return;
      values = ValuesOf(ddp);
      const auto mean = ddp.module().Buffers()[0]->value.span<float>();
      values.insert(values.end(), mean.begin(), mean.end());
    };
    ExpectRuns(program, ranks);
    return values;
  };
  const std::vector<float> one = trained(1), two = trained(2);
  ASSERT_FALSE(one.empty());
  EXPECT_THAT(two, Pointwise(FloatNear(1e-5F), one));
}

// A rank that has ended steps with the rates of its peers, also with one that
// they set later.
TEST(JoinTest, RatesAreThoseOfTheRanksThatTrain) {
  const Program program = [](Rank& rank) {
    auto model = rank.Make<Small>();
    DDP ddp(model);
    Sgd sgd(ddp, {/*lr=*/0.1, /*momentum=*/0.9});
    sgd.Schedule(LrSchedule::Exponential(0.5));
    {
      auto joined = ddp.Join();
      for (int i = 0; i < kBatches[rank.number()]; ++i) {
        if (i == 4) sgd.set_lr(0.3);
        sgd.ZeroGrad();
        nn::MeanSquaredError(ddp(rank.Randn({4, 4})), rank.Randn({4, 3}))
            .Backward();
        sgd.Step();
      }
    }
    ExpectEqualReplicas(rank, ddp, sgd, /*steps=*/5);
  };
  const absl::Status status = Spawn(program, Ranks(2));
  EXPECT_TRUE(status.ok()) << status;
}

// The optimizer leaves alone a layer that nobody trains, though a rank that has
// ended runs it on no rows.
TEST(JoinTest, ARankThatHasEndedUsesNoParameter) {
  struct Once : nn::Net {
    nn::Linear& last = Add<nn::Linear>("last", 3, 2);
    nn::Linear& once = Add<nn::Linear>("once", 3, 2);
    Var Forward(Var x) override {
      return uses_once ? last(x) + once(x) : last(x);
    }
    bool uses_once = true;
  };
  for (const bool in_backward : {false, true}) {
    const Program program = [in_backward](Rank& rank) {
      auto model = rank.Make<Once>();
      DDP ddp(model);
      SgdOptions decay{/*lr=*/0.1, /*momentum=*/0.9};
      decay.weight_decay = 0.1;
      Sgd sgd(ddp, decay);
      if (in_backward) ddp.StepInBackward(sgd);
      std::vector<float> once;
      {
        auto joined = ddp.Join();
        for (int i = 0; i < kBatches[rank.number()] - 2; ++i) {
          // Rank 0, which ends after one batch, goes on with it as a shadow.
          model->uses_once = rank.number() == 0 || i == 0;
          sgd.ZeroGrad();
          nn::MeanSquaredError(ddp(RowsOf(rank, i, 0, 4)), rank.Ones({4, 2}))
              .Backward();
          sgd.Step();
          const auto values = model->once.weight().value.span<float>();
          if (i == 0) once.assign(values.begin(), values.end());
        }
      }
      ExpectEqualReplicas(rank, ddp, sgd, /*steps=*/3);
      const auto values = model->once.weight().value.span<float>();
      EXPECT_EQ(std::vector<float>(values.begin(), values.end()), once);
    };
    const absl::Status status = Spawn(program, Ranks(2));
    EXPECT_TRUE(status.ok()) << status;
  }
}

// A rank without any batch has the shapes from its peers, and their buffers.
TEST(JoinTest, ARankMayHaveNoBatch) {
  for (const bool average : {false, true}) {
    const Program program = [average](Rank& rank) {
      auto model = rank.Make<NormedOnce>();
      DDPOptions options;
      options.average_buffers = average;
      DDP ddp(model, options);
      Adam adam(ddp, nn::AdamWDefaults());
      {
        auto joined = ddp.Join();
        for (int i = 0; i < 2 * rank.number(); ++i) {
          adam.ZeroGrad();
          nn::MeanSquaredError(ddp(rank.Randn({8, 3})), rank.Ones({8, 2}))
              .Backward();
          adam.Step();
        }
      }
      ExpectEqualReplicas(rank, ddp, adam, /*steps=*/4);
      const Tensor batches = ddp.module().Buffers()[2]->value;
      // Counters are those of the lowest rank that trains.
      EXPECT_EQ(batches.data<std::int64_t>()[0], 4);
    };
    ExpectRuns(program, 3);
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const SimulatedRun run = Simulate(program, Ranks(3), {seed});
      EXPECT_TRUE(run.status.ok()) << run.status;
    }
  }
}

// Without a batch on any rank, nothing happens.
TEST(JoinTest, AllRanksMayHaveNoBatch) {
  const Program program = [](Rank& rank) {
    auto model = rank.Make<NormedOnce>();
    DDP ddp(model);
    Sgd sgd(ddp, {/*lr=*/0.1});
    { auto joined = ddp.Join(); }
    ExpectEqualReplicas(rank, ddp, sgd, /*steps=*/0);
    auto again = ddp.Join();
  };
  ExpectRuns(program, 2);
}

// Two micro-batches a step, of which the first reduces nothing; gradients are
// those of one batch of both. Rank 0 has one step, rank 1 three.
TEST(JoinTest, GradientsAddUpUnderNoSync) {
  const auto trained = [](bool parts) {
    std::vector<float> values;
    const Program program = [&values, parts](Rank& rank) {
      auto model = rank.Make<Small>();
      DDP ddp(model);
      Sgd sgd(ddp, {/*lr=*/0.1, /*momentum=*/0.9});
      {
        auto joined = ddp.Join();
        for (int i = 0; i <= 2 * rank.number(); ++i) {
          Var x = rank.Zeros({4, 4}), y = rank.Ones({4, 3});
          Fill(x, absl::StrCat("join/x", rank.number(), ".", i), 1);
          sgd.ZeroGrad();
          if (parts) {
            {
              auto unsynced = ddp.NoSync();
              (nn::MeanSquaredError(ddp(x.Slice(0, 2)), y.Slice(0, 2)) / 2)
                  .Backward();
            }
            (nn::MeanSquaredError(ddp(x.Slice(2, 4)), y.Slice(2, 4)) / 2)
                .Backward();
          } else {
            nn::MeanSquaredError(ddp(x), y).Backward();
          }
          sgd.Step();
        }
      }
      ExpectEqualReplicas(rank, ddp, sgd, /*steps=*/3);
      if (rank.number() == 0) values = ValuesOf(ddp);
    };
    ExpectRuns(program, 2);
    return values;
  };
  const std::vector<float> whole = trained(false), parts = trained(true);
  ASSERT_FALSE(whole.empty());
  EXPECT_THAT(parts, Pointwise(FloatNear(1e-6F), whole));
}

// The gradients of one element, too, are divided by the ranks that train.
TEST(JoinTest, ElementsAreDividedByTheRanksThatTrain) {
  const Program program = [](Rank& rank) {
    auto model = rank.Make<nn::Linear>(1, 1);
    DDP ddp(model);
    Sgd sgd(ddp, {/*lr=*/1});
    const Tensor weight = ddp.Parameters()[0]->value;
    const float before = weight.data<float>()[0];
    {
      JoinOptions options;
      options.divide_by_initial_world_size = false;
      auto joined = ddp.Join(options);
      for (int i = 0; i < rank.number(); ++i) {
        sgd.ZeroGrad();
        nn::Sum(ddp(rank.Full({1, 1}, 3))).Backward();
        sgd.Step();
      }
    }
    EXPECT_FLOAT_EQ(weight.data<float>()[0], before - 3);
  };
  ExpectRuns(program, 2);
}

// Without an optimizer, a rank that has ended gets the parameters of the last
// one.
TEST(JoinTest, ChangesByHandAreThoseOfTheLastRank) {
  const Program program = [](Rank& rank) {
    auto model = rank.Make<nn::Linear>(1, 1);
    DDP ddp(model);
    const Tensor weight = ddp.Parameters()[0]->value;
    const float before = weight.data<float>()[0];
    {
      auto joined = ddp.Join();
      for (int i = 0; i < 1 + 2 * rank.number(); ++i) {
        nn::Sum(ddp(rank.Full({1, 1}, 4))).Backward();
        weight.data<float>()[0] += 1;
      }
    }
    EXPECT_FLOAT_EQ(weight.data<float>()[0], before + 3);
  };
  ExpectRuns(program, 2);
}

// --- Errors ---

TEST(JoinTest, EarlyTerminationThrowsOnAllRanks) {
  const Program program = [](Rank& rank) {
    auto model = rank.Make<Small>();
    DDP ddp(model);
    Sgd sgd(ddp, {/*lr=*/0.1});
    int batches = 0;
    const absl::Status status = base::Try([&] {
      JoinOptions options;
      options.throw_on_early_termination = true;
      auto joined = ddp.Join(options);
      for (; batches < kBatches[rank.number()]; ++batches) {
        sgd.ZeroGrad();
        nn::MeanSquaredError(ddp(rank.Randn({4, 4})), rank.Ones({4, 3}))
            .Backward();
        sgd.Step();
      }
    });
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 0 has no more batches"));
    EXPECT_EQ(batches, 3);
    ExpectEqualReplicas(rank, ddp, sgd, /*steps=*/3);
  };
  ExpectRuns(program, 2);
}

struct NeedsRows : nn::Net {
  nn::Linear& fc = Add<nn::Linear>("fc", 4, 1);
  Var Forward(Var x) override { return fc(x.View({x.dim(0), -1})); }
};

TEST(JoinTest, WrongUseIsNamed) {
  const auto error = [](const Program& program) {
    return std::string(Spawn(program, Ranks(2)).message());
  };
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<Small>();
                Sgd sgd(model, {/*lr=*/0.1});
                JoinGuard joined(model);
              }),
              AllOf(HasSubstr("Join() at join_test.cc:"),
                    HasSubstr("the model has no DDP")));
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<Small>();
                DDP ddp(model);
                Sgd sgd(ddp, {/*lr=*/0.1});
                auto joined = ddp.Join();
                auto again = ddp.Join();
              }),
              HasSubstr("another Join() holds"));
  // A model that needs rows, on a rank that has ended.
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<NeedsRows>();
                DDP ddp(model);
                auto joined = ddp.Join();
                if (rank.number() == 0) return;
                nn::Sum(ddp(rank.Ones({2, 4}))).Backward();
              }),
              AllOf(HasSubstr("rank 0: Join() at join_test.cc:"),
                    HasSubstr("the forward of a batch of 0 rows, which"),
                    HasSubstr("f32[0, 4]")));
  // A rank leaves out the backward of one batch.
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<Small>();
                DDP ddp(model);
                Sgd sgd(ddp, {/*lr=*/0.1});
                auto joined = ddp.Join();
                const Var y = ddp(rank.Ones({2, 4}));
                if (rank.number() == 1) ddp(rank.Ones({2, 4}));
                nn::MeanSquaredError(y, rank.Ones({2, 3})).Backward();
                sgd.Step();
              }),
              HasSubstr("rank 0 is at a backward after 0 steps, rank 1 is at a "
                        "forward after 0 steps"));
}

// A rank that returns early fails its peers as without the guard.
TEST(JoinTest, ADisabledGuardDoesNothing) {
  const absl::Status status = Spawn(
      [](Rank& rank) {
        auto model = rank.Make<Small>();
        DDP ddp(model);
        Sgd sgd(ddp, {/*lr=*/0.1});
        JoinOptions options;
        options.enable = false;
        auto joined = ddp.Join(options);
        if (rank.number() == 1) return;
        nn::MeanSquaredError(ddp(rank.Ones({2, 4})), rank.Ones({2, 3}))
            .Backward();
        sgd.Step();
      },
      Ranks(2));
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 has returned"));
}

}  // namespace
}  // namespace troupe

// DDP: replicas, buffers, norms over ranks, and errors.

#include "troupe/ddp.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/batch_norm.h"
#include "tests/troupe/ranks.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct TwoLayers : nn::Net {
  nn::Linear& first = Add<nn::Linear>("first", 10, 10);
  nn::Linear& second = Add<nn::Linear>("second", 10, 5);
  nn::Linear& unused = Add<nn::Linear>("unused", 3, 3);
  Var Forward(Var x) override { return second(first(x).Relu()); }
};

// Every rank has other data, and the same parameters, those of rank 0.
TEST(DdpTest, ReplicasStayEqual) {
  const Program program = [](Rank& rank) {
    auto model = rank.Make<TwoLayers>();
    if (rank.number() == 1) model->first.weight().value.span<float>()[0] = 7;
    DDP ddp(model);
    Sgd sgd(ddp, {/*lr=*/0.1});
    for (int i = 0; i < 3; ++i) {
      sgd.ZeroGrad();
      nn::MeanSquaredError(ddp(rank.Randn({20, 10})), rank.Randn({20, 5}))
          .Backward();
      sgd.Step();
    }
    EXPECT_EQ(sgd.steps(), 3);
    for (const nn::Parameter* parameter : ddp.Parameters()) {
      const Var all = rank.world().AllGather(parameter->value);
      for (std::int64_t i = 0; i < parameter->value.numel(); ++i) {
        ASSERT_EQ(all[0].tensor().data<float>()[i],
                  all[1].tensor().data<float>()[i])
            << parameter->name << "[" << i << "]";
      }
    }
  };
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const SimulatedRun run = Simulate(program, Ranks(2), {seed});
    EXPECT_TRUE(run.status.ok()) << run.status;
  }
  EXPECT_TRUE(Spawn(program, Ranks(2)).ok());
}

// Without DDP: the same numbers, up to rounding, from AverageGradients().
TEST(DdpTest, AverageGradientsIsTheSameWithoutOverlap) {
  const Program program = [](Rank& rank) {
    auto by_hand = rank.Make<TwoLayers>();
    auto model = rank.Make<TwoLayers>();
    DDP ddp(model);
    Sgd first(by_hand, {/*lr=*/0.1}), second(ddp, {/*lr=*/0.1});
    for (int i = 0; i < 3; ++i) {
      const Var x = rank.Randn({20, 10}), y = rank.Randn({20, 5});
      first.ZeroGrad();
      nn::MeanSquaredError(by_hand(x), y).Backward();
      AverageGradients(by_hand);
      first.Step();
      second.ZeroGrad();
      nn::MeanSquaredError(ddp(x), y).Backward();
      second.Step();
    }
    const Tensor a = by_hand->first.weight().value;
    const Tensor b = model->first.weight().value;
    for (std::int64_t i = 0; i < a.numel(); ++i) {
      ASSERT_EQ(a.data<float>()[i], b.data<float>()[i]) << i;
    }
  };
  const absl::Status status = Spawn(program, Ranks(2));
  EXPECT_TRUE(status.ok()) << status;
}

struct Normed : nn::Net {
  nn::BatchNorm1d& norm = Add<nn::BatchNorm1d>("norm", 3);
  nn::Linear& last = Add<nn::Linear>("last", 3, 2);
  Var Forward(Var x) override { return last(norm(x)); }
};

// Running statistics are rank 0's when a training forward begins, and rank 1's
// own otherwise.
TEST(DdpTest, BuffersAreThoseOfTheFirstRank) {
  for (const bool broadcast : {true, false}) {
    const Program program = [broadcast](Rank& rank) {
      auto model = rank.Make<Normed>();
      DDPOptions options;
      options.broadcast_buffers = broadcast;
      DDP ddp(model, options);
      Tensor mean = ddp.module().Buffers()[0]->value;
      if (rank.number() == 1) mean.span<float>()[0] = 100;
      {
        auto no_grad = rank.NoGrad();
        auto evaluating = rank.Evaluating();
        ddp(rank.Randn({8, 3}));
        EXPECT_EQ(mean.span<float>()[0], rank.number() == 1 ? 100 : 0);
      }
      ddp(rank.Randn({8, 3}));
      const bool own = rank.number() == 1 && !broadcast;
      EXPECT_NEAR(mean.span<float>()[0], own ? 90 : 0, 2);
    };
    const absl::Status status = Spawn(program, Ranks(2));
    EXPECT_TRUE(status.ok()) << status;
  }
}

// Returns on rank 0 the number of collectives that the group of two ranks has
// had: that of a barrier which rank 1 has not reached yet.
std::int64_t CollectivesOf(Rank& rank, Group& group) {
  std::int64_t count = 0;
  Var go = rank.Zeros({1});
  if (rank.number() == 0) {
    Work barrier = group.StartBarrier();
    count = group.comm().Waits().at(0).collective;
    rank.world().Send(go, /*to=*/1);
    barrier.Wait();
  } else {
    rank.world().Recv(go, /*from=*/0);
    group.Barrier();
  }
  return count;
}

struct ManyNorms : nn::Net {
  nn::BatchNorm1d& a = Add<nn::BatchNorm1d>("a", 3);
  nn::BatchNorm1d& b = Add<nn::BatchNorm1d>("b", 3);
  nn::BatchNorm1d& c = Add<nn::BatchNorm1d>("c", 3);
  nn::Linear& last = Add<nn::Linear>("last", 3, 2);
  Var Forward(Var x) override { return last(c(b(a(x)))); }
};

// Buffers of one dtype are one collective, and so are parameters: here f32
// parameters, f32 statistics, and i64 counters.
TEST(DdpTest, OneCollectiveForEachDtype) {
  for (const bool average : {false, true}) {
    const Program program = [average](Rank& rank) {
      auto model = rank.Make<ManyNorms>();
      if (rank.number() == 1) {
        for (const nn::Parameter* parameter : model.Parameters()) {
          parameter->value.span<float>()[0] = 50;
        }
        for (const nn::Buffer* buffer : model.module().Buffers()) {
          if (buffer->value.dtype() == DType::kF32) {
            buffer->value.span<float>()[0] = 100;
          } else {
            buffer->value.span<std::int64_t>()[0] = 7;
          }
        }
      }
      DDPOptions options;
      options.average_buffers = average;
      DDP ddp(model, options);
      Group& group = rank.Axis("dp");
      const std::int64_t begun = CollectivesOf(rank, group);
      // Layouts are compared, and rank 0's values sent.
      EXPECT_EQ(begun, rank.number() == 0 ? 1 + 1 + 2 : 0);
      for (const nn::Parameter* parameter : ddp.Parameters()) {
        EXPECT_NE(parameter->value.span<float>()[0], 50) << parameter->name;
      }
      for (const nn::Buffer* buffer : ddp.module().Buffers()) {
        if (buffer->value.dtype() == DType::kF32) {
          EXPECT_NE(buffer->value.span<float>()[0], 100) << buffer->name;
        } else {
          EXPECT_EQ(buffer->value.span<std::int64_t>()[0], 0) << buffer->name;
        }
      }
      ddp(rank.Randn({8, 3}));
      // The barrier, and the buffers.
      const std::int64_t ended = CollectivesOf(rank, group);
      EXPECT_EQ(ended - begun, rank.number() == 0 ? 1 + 2 : 0);
    };
    const absl::Status status = Spawn(program, Ranks(2));
    EXPECT_TRUE(status.ok()) << status;
  }
}

// Each rank begins a training forward with the averages of both.
TEST(DdpTest, BuffersAreAveraged) {
  const Program program = [](Rank& rank) {
    auto model = rank.Make<Normed>();
    DDPOptions options;
    options.average_buffers = true;
    DDP ddp(model, options);
    const std::vector<nn::Buffer*> buffers = ddp.module().Buffers();
    Tensor mean = buffers[0]->value, var = buffers[1]->value;
    mean.span<float>()[0] = rank.number() == 0 ? 10 : 30;
    var.span<float>()[2] = rank.number() == 0 ? 1 : 4;
    Tensor batches = buffers[2]->value;
    batches.span<std::int64_t>()[0] = rank.number() == 0 ? 5 : 9;
    ddp(rank.Zeros({8, 3}));
    // The batch of zeros has a weight of 0.1.
    EXPECT_FLOAT_EQ(mean.span<float>()[0], 18);
    EXPECT_FLOAT_EQ(var.span<float>()[2], 2.25);
    EXPECT_EQ(batches.span<std::int64_t>()[0], 6);
  };
  const absl::Status status = Spawn(program, Ranks(2));
  EXPECT_TRUE(status.ok()) << status;
}

// Synchronised norms over two ranks see the batch as a whole.
TEST(DdpTest, SynchronisedNormsSeeAllRanks) {
  const auto trained = [](int ranks) {
    std::vector<float> weights;
    const Program program = [&](Rank& rank) {
      auto model =
          rank.Place(nn::ConvertSyncBatchNorm(std::make_unique<Normed>()));
      DDP ddp(model);
      Sgd sgd(ddp, {/*lr=*/0.1});
      const int rows = 8 / rank.size();
      for (int step = 0; step < 3; ++step) {
        // Row i of the whole batch has the same numbers on any rank.
        Var x = rank.Zeros({rows, 3});
        for (int i = 0; i < 3 * rows; ++i) {
          const int number = 3 * rows * rank.number() + i;
          x.tensor().data<float>()[i] = (7 * number + 3 * step) % 11 - 5;
        }
        sgd.ZeroGrad();
        nn::MeanSquaredError(ddp(x), rank.Ones({rows, 2})).Backward();
        sgd.Step();
      }
      if (rank.number() != 0) return;
      for (const nn::Parameter* parameter : ddp.Parameters()) {
        const float* const values = parameter->value.data<float>();
        weights.insert(weights.end(), values,
                       values + parameter->value.numel());
      }
    };
    const absl::Status status = Spawn(program, Ranks(ranks));
    EXPECT_TRUE(status.ok()) << status;
    return weights;
  };
  const std::vector<float> one = trained(1), two = trained(2);
  ASSERT_EQ(one.size(), two.size());
  ASSERT_FALSE(one.empty());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(one[i], two[i], 1e-5) << i;
  }
}

// The memory of the gradients outlives their reductions.
TEST(DdpTest, AProgramMayEndWhileGradientsAreReduced) {
  const Program program = [](Rank& rank) {
    auto model = rank.Make<TwoLayers>();
    DDP ddp(model);
    nn::MeanSquaredError(ddp(rank.Randn({20, 10})), rank.Randn({20, 5}))
        .Backward();
    if (rank.number() == 2) throw std::runtime_error("enough");
  };
  for (int i = 0; i < 20; ++i) {
    const absl::Status status = Spawn(program, Ranks(2));
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_THAT(std::string(Spawn(program, Ranks(3)).message()),
                HasSubstr("rank 2: enough"));
  }
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const SimulatedRun run = Simulate(program, Ranks(2), {seed});
    ASSERT_TRUE(run.status.ok()) << run.status;
  }
}

TEST(DdpTest, WrongUseIsNamed) {
  const auto error = [](const Program& program) {
    return std::string(Spawn(program, Ranks(2)).message());
  };
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<TwoLayers>();
                Sgd sgd(model, {/*lr=*/0.1});
                DDP ddp(model);
              }),
              HasSubstr("make the DDP first"));
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<nn::Linear>(3, 2 + rank.number());
                DDP ddp(model);
              }),
              HasSubstr("rank 1 has another model than rank 0"));
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<TwoLayers>();
                DDPOptions options;
                options.bucket_cap_mb = 0;
                DDP ddp(model, options);
              }),
              HasSubstr("DDPOptions.bucket_cap_mb"));
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<TwoLayers>();
                DDPOptions options;
                options.reduction_dtype = DType::kI32;
                DDP ddp(model, options);
              }),
              HasSubstr("DDPOptions.reduction_dtype is a floating dtype, such "
                        "as bf16 or f16, not i32"));
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<TwoLayers>();
                DDP ddp(model);
                SgdOptions options;
                options.common.clip_grad_norm = 1;
                ddp.StepInBackward(Sgd(ddp, options));
              }),
              HasSubstr("needs the norm of all gradients first"));
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<TwoLayers>();
                auto other = rank.Make<TwoLayers>();
                DDP ddp(model);
                ddp.StepInBackward(Sgd(other, {/*lr=*/0.1}));
              }),
              HasSubstr("takes the optimizer of this DDP"));
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<TwoLayers>();
                DDP ddp(model);
                Sgd sgd(ddp, {/*lr=*/0.1});
                ddp.StepInBackward(sgd);
                auto unsynced = ddp.NoSync();
                nn::MeanSquaredError(ddp(rank.Randn({2, 10})),
                                     rank.Randn({2, 5}))
                    .Backward();
              }),
              HasSubstr("under NoSync() in a loop with StepInBackward()"));
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<TwoLayers>();
                DDP ddp(model);
                Sgd sgd(ddp, {/*lr=*/0.1});
                sgd.Step();
              }),
              AllOf(HasSubstr("Step() at ddp_test.cc:")));
  // A rank leaves out a backward, and so its reductions.
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<TwoLayers>();
                DDP ddp(model);
                Sgd sgd(ddp, {/*lr=*/0.1});
                if (rank.number() == 1) return;
                nn::MeanSquaredError(ddp(rank.Randn({2, 10})),
                                     rank.Randn({2, 5}))
                    .Backward();
                sgd.Step();
              }),
              AllOf(HasSubstr("rank 0: "), HasSubstr("rank 1 has returned")));
}

}  // namespace
}  // namespace troupe

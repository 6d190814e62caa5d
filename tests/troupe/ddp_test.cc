// Loops of one's own: DDP beside a job, in threads and under seeds.

#include "troupe/ddp.h"

#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "actors/job.h"
#include "data/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/modules/batch_norm.h"
#include "tests/base/seeds.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSteps = 6;
constexpr int kBatch = 16;
constexpr int kSeeds = 200;

// The dataset is drawn once.
data::DatasetPtr Glyphs() {
  static const data::DatasetPtr* const glyphs = [] {
    data::DatasetOptions options;
    options.kind = "glyphs";
    return new data::DatasetPtr(data::OpenDataset(options)->train);
  }();
  return *glyphs;
}

// Results of a run, on rank 0.
struct Trained {
  std::vector<double> losses;
  std::vector<float> parameters;  // the first layer's, after the last step
};

enum class Rule { kSgd, kAdamW };

// The loop, on each rank.
Program Loop(Rule rule, Trained* run, int micro_batches = 1,
             const DDPOptions& edited = {}, bool step_in_backward = false) {
  return [=](Rank& rank) {
    auto model = rank.Place(nn::MakeMlp({784, 24, 10}, {}));
    DDPOptions options = edited;
    options.first_bucket_mb = 0.001;
    options.bucket_cap_mb = 0.02;
    DDP ddp(model, options);
    std::optional<Optimizer> optimizer;
    if (rule == Rule::kSgd) {
      optimizer.emplace(Sgd(ddp, {/*lr=*/0.02, /*momentum=*/0.9}));
    } else {
      optimizer.emplace(Adam(ddp, nn::AdamWDefaults()));
    }
    if (step_in_backward) ddp.StepInBackward(*optimizer);
    DataLoader loader(rank, Glyphs(),
                      {kBatch / rank.size() / micro_batches, /*shuffle=*/true});
    int step = 0, micro_batch = 0;
    double sum = 0;
    for (auto [x, y] : loader) {
      if (micro_batch == 0) {
        optimizer->ZeroGrad();
        sum = 0;
      }
      const bool last = ++micro_batch == micro_batches;
      Var loss;
      if (last) {
        loss = nn::CrossEntropy(ddp(x.Flatten()), y);
        // A backward with exact_mean begins at a loss.
        const Var root =
            options.exact_mean ? loss : loss.Mean() / micro_batches;
        root.Backward();
      } else {
        auto unsynced = ddp.NoSync();
        loss = nn::CrossEntropy(ddp(x.Flatten()), y);
        (loss.Mean() / micro_batches).Backward();
      }
      AllReduce(loss, ReduceOp::kAvg);
      sum += loss.item();
      if (!last) continue;
      micro_batch = 0;
      optimizer->Step();
      if (rank.number() == 0) run->losses.push_back(sum / micro_batches);
      if (++step == kSteps) break;
    }
    if (rank.number() != 0) return;
    const Tensor& weight = ddp.Parameters()[0]->value;
    run->parameters.assign(weight.data<float>(),
                           weight.data<float>() + weight.numel());
  };
}

// The losses of the same job.
std::vector<double> JobLosses(
    Rule rule, int ranks,
    std::optional<nn::DType> reduction_dtype = std::nullopt) {
  struct Keep : actors::JobObserver {
    void OnSteps(absl::Span<const actors::StepReport> steps) override {
      for (const auto& step : steps) losses.push_back(step.loss);
    }
    std::vector<double> losses;
  } keep;
  actors::JobSpec spec;
  spec.train = Glyphs();
  spec.model = [] { return nn::MakeMlp({784, 24, 10}, {}); };
  spec.loss = nn::ops::CrossEntropyLoss();
  if (rule == Rule::kSgd) {
    spec.optimizer = nn::SgdOptions{0.02, 0.9};
  } else {
    spec.optimizer = nn::AdamWDefaults();
  }
  spec.plan.mesh = pipeline::Mesh(ranks);
  spec.plan.reduction_dtype = reduction_dtype;
  spec.plan.global_batch_size = kBatch;
  spec.steps = kSteps;
  const auto result = actors::RunJob(spec, &keep);
  EXPECT_TRUE(result.ok()) << result.status();
  return keep.losses;
}

SpawnOptions Ranks(int ranks) {
  SpawnOptions options;
  options.ranks = ranks;
  return options;
}

TEST(DdpTest, ALoopHasTheLossesOfItsJob) {
  for (const Rule rule : {Rule::kSgd, Rule::kAdamW}) {
    for (const int ranks : {1, 2, 4}) {
      Trained run;
      const absl::Status status = Spawn(Loop(rule, &run), Ranks(ranks));
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(run.losses, JobLosses(rule, ranks)) << ranks << " ranks";
    }
  }
}

TEST(DdpTest, GradientsAreRoundedAsInTheJob) {
  for (const bool exact_mean : {true, false}) {
    for (const nn::DType dtype : {nn::DType::kBF16, nn::DType::kF32}) {
      DDPOptions options;
      options.exact_mean = exact_mean;
      options.reduction_dtype = dtype;
      Trained run;
      const absl::Status status =
          Spawn(Loop(Rule::kSgd, &run, /*micro_batches=*/1, options), Ranks(2));
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(run.losses, JobLosses(Rule::kSgd, 2, dtype));
      EXPECT_EQ(run.losses == JobLosses(Rule::kSgd, 2),
                dtype == nn::DType::kF32);
    }
  }
}

TEST(DdpTest, StepsInBackwardHaveTheSameBits) {
  for (const Rule rule : {Rule::kSgd, Rule::kAdamW}) {
    for (const int ranks : {1, 2}) {
      for (const bool exact_mean : {false, true}) {
        DDPOptions options;
        options.exact_mean = exact_mean;
        Trained want, have;
        ASSERT_TRUE(Spawn(Loop(rule, &want, 1, options), Ranks(ranks)).ok());
        const Program program =
            Loop(rule, &have, 1, options, /*step_in_backward=*/true);
        const absl::Status status = Spawn(program, Ranks(ranks));
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(have.losses, want.losses);
        EXPECT_EQ(have.parameters, want.parameters);
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
          have = {};
          const SimulatedRun run = Simulate(program, Ranks(ranks), {seed});
          ASSERT_TRUE(run.status.ok()) << run.status;
          EXPECT_EQ(have.parameters, want.parameters) << "seed " << seed;
        }
      }
    }
  }
}

// In one thread, with messages that take time: a seed chooses both the order of
// the ranks and the delays. 1,000 seeds of each: TROUPE_SIM_TIMES=5.
TEST(DdpTest, SeedsChangeNoBit) {
  for (const int ranks : {2, 4}) {
    Trained threads;
    ASSERT_TRUE(Spawn(Loop(Rule::kSgd, &threads), Ranks(ranks)).ok());
    const std::vector<double> job = JobLosses(Rule::kSgd, ranks);
    std::set<std::uint64_t> traces;
    for (const std::uint64_t seed : Seeds(kSeeds)) {
      Trained run;
      const SimulatedRun simulated =
          Simulate(Loop(Rule::kSgd, &run), Ranks(ranks),
                   {seed, /*message_time_max=*/absl::Milliseconds(10)});
      ASSERT_TRUE(simulated.status.ok())
          << simulated.status << ReplayCommand(seed);
      ASSERT_EQ(run.losses, job) << ranks << " ranks" << ReplayCommand(seed);
      ASSERT_EQ(run.parameters, threads.parameters)
          << ranks << " ranks" << ReplayCommand(seed);
      traces.insert(simulated.trace_hash);
    }
    EXPECT_GT(2 * traces.size(), Seeds(kSeeds).size()) << "seeds act alike";
  }
}

// Micro-batches under NoSync() add up to the whole batch.
TEST(DdpTest, NoSyncAddsUp) {
  Trained whole, parts;
  ASSERT_TRUE(Spawn(Loop(Rule::kSgd, &whole), Ranks(2)).ok());
  const absl::Status status =
      Spawn(Loop(Rule::kSgd, &parts, /*micro_batches=*/2), Ranks(2));
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(parts.losses.size(), whole.losses.size());
  for (int i = 0; i < kSteps; ++i) {
    // The samples of a rank's second half are another rank's in one batch.
    EXPECT_NEAR(parts.losses[i], whole.losses[i], 1e-5) << i;
  }
}

struct Toy : nn::Net {
  nn::Linear& first = Add<nn::Linear>("first", 10, 10);
  nn::Linear& second = Add<nn::Linear>("second", 10, 5);
  nn::Linear& unused = Add<nn::Linear>("unused", 3, 3);
  Var Forward(Var x) override { return second(first(x).Relu()); }
};

// Every rank has other data, and the same parameters, those of rank 0.
TEST(DdpTest, ReplicasStayEqual) {
  const Program program = [](Rank& rank) {
    auto model = rank.Make<Toy>();
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
    auto by_hand = rank.Make<Toy>();
    auto model = rank.Make<Toy>();
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
    auto model = rank.Make<Toy>();
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
                auto model = rank.Make<Toy>();
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
                auto model = rank.Make<Toy>();
                DDPOptions options;
                options.bucket_cap_mb = 0;
                DDP ddp(model, options);
              }),
              HasSubstr("DDPOptions.bucket_cap_mb"));
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<Toy>();
                DDPOptions options;
                options.reduction_dtype = DType::kI32;
                DDP ddp(model, options);
              }),
              HasSubstr("DDPOptions.reduction_dtype is a floating dtype, such "
                        "as bf16 or f16, not i32"));
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<Toy>();
                DDP ddp(model);
                SgdOptions options;
                options.common.clip_grad_norm = 1;
                ddp.StepInBackward(Sgd(ddp, options));
              }),
              HasSubstr("needs the norm of all gradients first"));
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<Toy>();
                auto other = rank.Make<Toy>();
                DDP ddp(model);
                ddp.StepInBackward(Sgd(other, {/*lr=*/0.1}));
              }),
              HasSubstr("takes the optimizer of this DDP"));
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<Toy>();
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
                auto model = rank.Make<Toy>();
                DDP ddp(model);
                Sgd sgd(ddp, {/*lr=*/0.1});
                sgd.Step();
              }),
              AllOf(HasSubstr("Step() at ddp_test.cc:")));
  // A rank leaves out a backward, and so its reductions.
  EXPECT_THAT(error([](Rank& rank) {
                auto model = rank.Make<Toy>();
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

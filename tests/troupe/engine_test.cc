#include "troupe/engine.h"

#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "base/status_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/fresh_path.h"
#include "tests/troupe/ranks.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using testing::HasSubstr;

struct TwoLayers : nn::Net {
  nn::Linear& first = Add<nn::Linear>("first", 3, 5);
  nn::Linear& second = Add<nn::Linear>("second", 5, 2);
  Var Forward(Var x) override { return second(first(x).Relu()); }
};

EngineOptions Accumulating(int steps) {
  EngineOptions options;
  options.gradient_accumulation_steps = steps;
  return options;
}

std::vector<float> Weights(TwoLayers& model) {
  const auto span = model.first.weight().value.span<float>();
  return {span.begin(), span.end()};
}

// The micro-batch `i` of a rank.
Var Batch(Rank& rank, int i) {
  return rank.Arange(0, 12).View({4, 3}) / (7 + i + rank.number());
}

Var LossOf(const Var& y) { return nn::MeanSquaredError(y, nn::OnesLike(y)); }

void ExpectOk(const Program& program, int ranks) {
  const absl::Status status = Spawn(program, Ranks(ranks));
  EXPECT_TRUE(status.ok()) << status;
}

// The loop that one would write by hand, on two ranks, to the bit.
TEST(EngineTest, UpdatesAsALoopByHandDoes) {
  for (const int parts : {1, 4}) {
    const Program program = [parts](Rank& rank) {
      SgdOptions sgd_options{/*lr=*/0.1, /*momentum=*/0.9};
      auto given = rank.Make<TwoLayers>();
      Engine engine(given, sgd_options, Accumulating(parts));
      auto model = rank.Make<TwoLayers>();
      DDP ddp(model);
      Sgd sgd(ddp, sgd_options);
      for (int step = 0; step < 3; ++step) {
        sgd.ZeroGrad();
        for (int i = 0; i < parts; ++i) {
          const Var x = Batch(rank, step * parts + i);
          EXPECT_EQ(engine.IsGradientAccumulationBoundary(), i + 1 == parts);
          engine.Backward(LossOf(engine(x)));
          engine.Step();
          if (i + 1 < parts) {
            auto unsynced = ddp.NoSync();
            (LossOf(ddp(x)) / parts).Backward();
          } else {
            (parts == 1 ? LossOf(ddp(x)) : LossOf(ddp(x)) / parts).Backward();
          }
        }
        sgd.Step();
        EXPECT_EQ(engine.global_steps(), step + 1);
        EXPECT_EQ(Weights(*given), Weights(*model)) << "step " << step;
      }
      EXPECT_EQ(engine.micro_steps(), 3 * parts);
    };
    ExpectOk(program, 2);
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const SimulatedRun run = Simulate(program, Ranks(2), {seed});
      EXPECT_TRUE(run.status.ok()) << run.status << " seed " << seed;
    }
  }
}

// Micro-batches of one size have the gradients of the whole batch.
TEST(EngineTest, AccumulationHasTheGradientOfTheWholeBatch) {
  ExpectOk(
      [](Rank& rank) {
        auto split = rank.Make<TwoLayers>(), whole = rank.Make<TwoLayers>();
        Engine parts(split, SgdOptions{/*lr=*/0.1}, Accumulating(2));
        Engine all(whole, SgdOptions{/*lr=*/0.1});
        const Var x = Batch(rank, 0);
        for (const int begin : {0, 2}) {
          parts.Backward(LossOf(parts(x.Slice(begin, begin + 2))));
          parts.Step();
        }
        all.Backward(LossOf(all(x)));
        all.Step();
        const std::vector<float> a = Weights(*split), b = Weights(*whole);
        for (std::size_t i = 0; i < a.size(); ++i) {
          EXPECT_NEAR(a[i], b[i], 1e-6);
        }
      },
      1);
}

TEST(EngineTest, ClipsTheNormOfAnUpdate) {
  ExpectOk(
      [](Rank& rank) {
        auto model = rank.Make<TwoLayers>(), by_hand = rank.Make<TwoLayers>();
        EngineOptions options;
        options.gradient_clipping = 1e-3;
        Engine engine(model, AdamOptions{/*lr=*/0.1}, options);
        AdamOptions clipping{/*lr=*/0.1};
        clipping.common.clip_grad_norm = 1e-3;
        Adam adam(by_hand, clipping);
        const Var x = Batch(rank, 1);
        engine.Backward(LossOf(engine(x)));
        engine.Step();
        adam.ZeroGrad();
        LossOf(by_hand(x)).Backward();
        adam.Step();
        EXPECT_EQ(Weights(*model), Weights(*by_hand));
      },
      1);
}

TEST(EngineTest, ARunThatIsLoadedGoesOnWithTheSameBits) {
  const std::string folder = base::FreshPath();
  std::vector<float> through, resumed;
  const auto train = [](Rank& rank, Engine& engine, int from, int to) {
    for (int i = from; i < to; ++i) {
      engine.Backward(LossOf(engine(Batch(rank, i))));
      engine.Step();
    }
  };
  ExpectOk(
      [&](Rank& rank) {
        auto model = rank.Make<TwoLayers>();
        Engine engine(model, AdamOptions{/*lr=*/0.01}, Accumulating(2));
        train(rank, engine, 0, 4);
        engine.SaveCheckpoint(folder, "", {{"epoch", 7}});
        train(rank, engine, 4, 8);
        engine.SaveCheckpoint(folder, "last", {{"epoch", 8}});
        if (rank.number() == 0) through = Weights(*model);
      },
      2);
  ExpectOk(
      [&](Rank& rank) {
        auto model = rank.Make<TwoLayers>();
        Engine engine(model, AdamOptions{/*lr=*/0.01}, Accumulating(2));
        Engine::ClientState client = {{"epoch", 0}};
        EXPECT_EQ(engine.LoadCheckpoint(folder, "global_step2", &client),
                  "global_step2");
        EXPECT_EQ(client.at("epoch"), 7);
        EXPECT_EQ(engine.micro_steps(), 4);
        EXPECT_EQ(engine.global_steps(), 2);
        train(rank, engine, 4, 8);
        if (rank.number() == 0) resumed = Weights(*model);
        EXPECT_EQ(engine.LoadCheckpoint(folder, "", &client), "last");
        EXPECT_EQ(client.at("epoch"), 8);
      },
      2);
  EXPECT_EQ(through, resumed);
}

TEST(EngineTest, RefusesWhatCannotBeMeant) {
  ExpectOk(
      [](Rank& rank) {
        const auto error = [](const std::function<void()>& call) {
          return std::string(base::Try(call).message());
        };
        EngineOptions options;
        options.ddp.exact_mean = true;
        options.gradient_accumulation_steps = 2;
        EXPECT_THAT(error([&] {
                      Engine(rank.Make<TwoLayers>(), SgdOptions{0.1}, options);
                    }),
                    HasSubstr("ddp.exact_mean needs"));
        EXPECT_THAT(error([&] {
                      Engine(rank.Make<TwoLayers>(), SgdOptions{0.1},
                             Accumulating(0));
                    }),
                    HasSubstr("gradient_accumulation_steps is 0"));
        Engine engine(rank.Make<TwoLayers>(), SgdOptions{0.1}, Accumulating(2));
        EXPECT_THAT(error([&] { engine.Step(); }),
                    HasSubstr("without a Backward()"));
        engine.Backward(LossOf(engine(Batch(rank, 0))));
        engine.Step();
        EXPECT_THAT(error([&] { engine.SaveCheckpoint("/proc/none"); }),
                    HasSubstr("would lose the gradients"));
        EXPECT_THAT(error([&] { engine.LoadCheckpoint("/proc/none"); }),
                    HasSubstr("/proc/none has no file \"latest\""));
        EXPECT_THAT(error([&] { engine.LoadCheckpoint("/proc", "a/b"); }),
                    HasSubstr("leave out slashes"));
      },
      1);
}

}  // namespace
}  // namespace troupe

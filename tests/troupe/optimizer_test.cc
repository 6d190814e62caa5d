// Rates, parts of the parameters, and files of a loop's optimizer.

#include "troupe/optimizer.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/dropout.h"
#include "nn/serialize/safetensors.h"
#include "tests/troupe/ranks.h"
#include "troupe/plateau.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void RunOn(int ranks, const Program& program) {
  const absl::Status status = Spawn(program, Ranks(ranks));
  EXPECT_TRUE(status.ok()) << status;
}

// One weight, whose gradient is 1: a step of SGD subtracts its rate.
struct Slope : nn::Net {
  nn::Linear& fc = Add<nn::Linear>("fc", 1, 1);
  Var Forward(Var x) override { return fc(x); }
  double value() { return fc.weight().value.span<float>()[0]; }
};

void Descend(Rank& rank, const Model<Slope>& model, Sgd& sgd) {
  sgd.ZeroGrad();
  model(rank.Ones({1, 1})).Mean().Backward();
  sgd.Step();
}

// Rates of 8 steps from 0.1 on, and what the steps have subtracted.
std::vector<double> RatesOf(const std::function<void(Sgd&)>& schedule) {
  std::vector<double> rates;
  RunOn(1, [&](Rank& rank) {
    auto model = rank.Make<Slope>();
    Sgd sgd(model, {/*lr=*/0.1});
    schedule(sgd);
    for (int step = 0; step < 8; ++step) {
      rates.push_back(sgd.lr());
      const double before = model->value();
      Descend(rank, model, sgd);
      EXPECT_NEAR(before - model->value(), rates.back(), 1e-6) << step;
    }
  });
  return rates;
}

void ExpectRates(const std::function<void(Sgd&)>& schedule,
                 const std::vector<double>& expected) {
  const std::vector<double> rates = RatesOf(schedule);
  ASSERT_EQ(rates.size(), expected.size());
  for (std::size_t i = 0; i < rates.size(); ++i) {
    EXPECT_NEAR(rates[i], expected[i], 1e-12) << "step " << i;
  }
}

// Expected numbers: get_last_lr() of PyTorch 2.15, in 12 digits.
TEST(LoopOptimizerTest, SchedulesHaveTheRatesOfPyTorch) {
  const auto by = [](const LrSchedule& schedule) {
    return [schedule](Sgd& sgd) { sgd.Schedule(schedule); };
  };
  ExpectRates(by(LrSchedule::Step(3, 0.5)),
              {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025});
  ExpectRates(by(LrSchedule::MultiStep({2, 5})),
              {0.1, 0.1, 0.01, 0.01, 0.01, 0.001, 0.001, 0.001});
  ExpectRates(
      by(LrSchedule::Exponential(0.9)),
      {0.1, 0.09, 0.081, 0.0729, 0.06561, 0.059049, 0.0531441, 0.04782969});
  ExpectRates(by(LrSchedule::Cosine(8, /*min_factor=*/0.1)),
              {0.1, 0.096574578963, 0.0868198051534, 0.0722207544564, 0.055,
               0.0377792455436, 0.0231801948466, 0.013425421037});
  ExpectRates(by(LrSchedule::OneCycle(8)),
              {0.004, 0.0819275104892, 0.0971941777388, 0.081174565395,
               0.0555984014123, 0.0283060998209, 0.00766415938343, 4e-07});
  LrSchedule linear;  // LinearLR(start_factor=0.25, total_iters=4)
  linear.warmup_steps = 4;
  linear.warmup_start = 0.25;
  ExpectRates(by(linear),
              {0.025, 0.04375, 0.0625, 0.08125, 0.1, 0.1, 0.1, 0.1});
  ExpectRates(
      [](Sgd& sgd) {  // LambdaLR
        sgd.Schedule([](std::int64_t t) { return std::pow(0.95, t); });
      },
      {0.1, 0.095, 0.09025, 0.0857375, 0.081450625, 0.07737809375,
       0.0735091890625, 0.0698337296094});
  // Epochs of 3 steps, which also tell steps and epochs apart.
  ExpectRates(
      [](Sgd& sgd) { sgd.Schedule(LrSchedule::Exponential(0.5), /*every=*/3); },
      {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025});
}

TEST(LoopOptimizerTest, TheOptionsScheduleHoldsUntilAnotherOne) {
  RunOn(1, [](Rank& rank) {
    auto model = rank.Make<Slope>();
    SgdOptions options;
    options.lr = 0.1;
    options.common.schedule.warmup_steps = 4;
    options.common.schedule.warmup_start = 0.5;
    Sgd sgd(model, options);
    EXPECT_EQ(sgd.lr(), 0.05);
    EXPECT_EQ(sgd.base_lr(), 0.1);
    sgd.Schedule(LrSchedule());
    EXPECT_EQ(sgd.lr(), 0.1);
  });
}

TEST(LoopOptimizerTest, ASetRateWinsAndHoldsAtTheNextStep) {
  RunOn(2, [](Rank& rank) {
    auto model = rank.Make<Slope>();
    DDP ddp(model);
    Sgd sgd(ddp, {/*lr=*/0.5});
    sgd.Schedule(LrSchedule::Exponential(0.5));
    ddp(rank.Ones({1, 1})).Mean().Backward();
    sgd.set_lr(0.25);  // between backward and step
    double before = model->value();
    sgd.Step();
    EXPECT_NEAR(before - model->value(), 0.25, 1e-6);
    EXPECT_EQ(sgd.lr(), 0.25);
    before = model->value();
    Descend(rank, model, sgd);
    EXPECT_NEAR(before - model->value(), 0.25, 1e-6);
    sgd.Schedule(LrSchedule::Exponential(0.5));  // step 2 follows
    EXPECT_EQ(sgd.lr(), 0.125);
    before = model->value();
    Descend(rank, model, sgd);
    EXPECT_NEAR(before - model->value(), 0.125, 1e-6);
  });
}

TEST(LoopOptimizerTest, RefusesRatesThatNothingCanTrainWith) {
  RunOn(1, [](Rank& rank) {
    auto model = rank.Make<Slope>();
    Sgd sgd(model, {/*lr=*/0.5});
    const auto error = [](const std::function<void()>& run) {
      return base::Try(run).ToString();
    };
    EXPECT_EQ(error([&] { sgd.set_lr(-1); }),
              "INVALID_ARGUMENT: a learning rate is at least 0 and finite, not "
              "-1");
    EXPECT_EQ(sgd.lr(), 0.5);
    EXPECT_THAT(error([&] { sgd.Schedule(LrSchedule(), /*every=*/0); }),
                HasSubstr("`every` is at least 1 step, not 0"));
    EXPECT_THAT(error([&] { sgd.Schedule(nullptr); }),
                HasSubstr("needs a function"));
    EXPECT_THAT(error([&] { sgd.Schedule(LrSchedule::Step(0)); }),
                HasSubstr("step_size"));
    Descend(rank, model, sgd);
    sgd.Schedule([](std::int64_t t) { return t == 1 ? std::nan("") : 1; });
    EXPECT_EQ(error([&] { Descend(rank, model, sgd); }),
              "INVALID_ARGUMENT: the scheduled learning rate of step 1 is at "
              "least 0 and finite, not nan");
    EXPECT_THAT(error([&] { Sgd(model, {/*lr=*/-1}); }), HasSubstr("lr"));
  });
}

struct Head : nn::Net {
  nn::Linear& body = Add<nn::Linear>("body", 6, 8);
  nn::Linear& fc = Add<nn::Linear>("fc", 8, 3);
  nn::Dropout dropout{0.5};
  Var Forward(Var x) override { return fc(dropout(body(x).Relu())); }
};

std::vector<float> ValuesOf(const nn::Module& module) {
  std::vector<float> values;
  for (const nn::Parameter* p : const_cast<nn::Module&>(module).Parameters()) {
    const auto span = p->value.span<float>();
    values.insert(values.end(), span.begin(), span.end());
  }
  return values;
}

using MakeRule =
    std::function<std::unique_ptr<Optimizer>(const Trainable& model)>;

void TrainHead(Rank& rank, const Trainable& model, Optimizer& optimizer) {
  optimizer.ZeroGrad();
  nn::MeanSquaredError(model(rank.Randn({4, 6})), rank.Randn({4, 3}))
      .Backward();
  optimizer.Step();
}

// A part of the parameters gets the updates that it has among all, and the rest
// none: neither momentum, nor weight decay, nor a layer's norm.
TEST(LoopOptimizerTest, OnlyTrainsAPart) {
  using Names = std::vector<std::string>;
  using Make =
      std::function<std::unique_ptr<Optimizer>(const Trainable&, const Names&)>;
  const auto sgd = [](const Trainable& model, const Names& only) {
    SgdOptions options{/*lr=*/0.1, /*momentum=*/0.9};
    options.weight_decay = 0.1;
    return std::unique_ptr<Optimizer>(new Sgd(model, options, only));
  };
  const auto adam = [](const Trainable& model, const Names& only) {
    return std::unique_ptr<Optimizer>(
        new Adam(model, nn::AdamWDefaults(), only));
  };
  const auto lamb = [](const Trainable& model, const Names& only) {
    return std::unique_ptr<Optimizer>(new Lamb(model, nn::LambOptions(), only));
  };
  RunOn(2, [&](Rank& rank) {
    int number = 0;
    for (const Make& make : {Make(sgd), Make(adam), Make(lamb)}) {
      auto all = rank.Make<Head>(), part = rank.Make<Head>();
      DDP ddp_all(all), ddp_part(part);
      const auto of_all = make(ddp_all, {});
      const auto of_part = make(ddp_part, {"fc.*"});
      const std::vector<float> body = ValuesOf(part->body);
      const nn::StepPosition draws = *rank.context().random();
      TrainHead(rank, ddp_all, *of_all);
      rank.context().set_random(draws);  // the same samples
      TrainHead(rank, ddp_part, *of_part);
      EXPECT_EQ(ValuesOf(part->fc), ValuesOf(all->fc)) << number;
      EXPECT_NE(ValuesOf(all->body), body) << number;
      TrainHead(rank, ddp_part, *of_part);
      EXPECT_EQ(ValuesOf(part->body), body) << number;
      ++number;
    }
  });
}

TEST(LoopOptimizerTest, OnlyNamesAPatternWithoutAParameter) {
  RunOn(1, [](Rank& rank) {
    auto model = rank.Make<Head>();
    EXPECT_EQ(base::Try([&] {
                Adam(model, {/*lr=*/0.1}, {"fc.*", "head.*"});
              }).ToString(),
              "INVALID_ARGUMENT: the optimizer's `only` has \"head.*\", which "
              "is no parameter that the model trains (* stands for any text); "
              "choose among body.weight, body.bias, fc.weight, fc.bias");
    Adam adam(model, {/*lr=*/0.1}, {"fc.*"});  // the model is as it was
    TrainHead(rank, model, adam);
  });
}

// Six steps, or three and, in another program, three more from a file. With
// `skips`, the second step is one that skip_nonfinite skips. In threads, or in
// one thread by a seed.
struct TrainedRun {
  std::vector<float> values;
  std::vector<float> states;
  double lr = 0;
};
constexpr int kSteps = 6;

TrainedRun TrainedFrom(std::optional<std::uint64_t> seed, int ranks,
                       const MakeRule& make, bool skips,
                       const std::string& path, int from, int to, bool saves) {
  TrainedRun run;
  const Program program = [&](Rank& rank) {
    auto model = rank.Make<Head>();
    DDP ddp(model);
    const std::unique_ptr<Optimizer> optimizer = make(ddp);
    int step = 0;
    State state;
    state.Add(ddp).Add(*optimizer).Add("epoch", step);
    if (from > 0) {
      if (ranks > 1) TrainHead(rank, ddp, *optimizer);  // Load() undoes it
      Load(state, path);
      EXPECT_EQ(step, from);
      EXPECT_EQ(optimizer->steps(), from);
    }
    for (; step < to; ++step) {
      optimizer->ZeroGrad();
      Var loss =
          nn::MeanSquaredError(ddp(rank.Randn({4, 6})), rank.Randn({4, 3}))
              .Mean();
      if (skips && step == 1) {
        loss = loss * std::numeric_limits<double>::infinity();
      }
      loss.Backward();
      if (step == 2) optimizer->set_lr(optimizer->lr() / 2);
      optimizer->Step();
      if (step == 4) optimizer->Schedule(LrSchedule::Exponential(0.5));
    }
    Barrier(rank);
    if (rank.number() != 0) return;
    if (saves) Save(state, path);
    run.values = ValuesOf(*model);
    run.lr = optimizer->lr();
    State states;
    states.Add(*optimizer);
    for (const StateEntry& entry : states.entries()) {
      if (!entry.tensor.defined()) continue;
      const auto span = entry.tensor.span<float>();
      run.states.insert(run.states.end(), span.begin(), span.end());
    }
  };
  const absl::Status status =
      seed.has_value() ? Simulate(program, Ranks(ranks), {*seed}).status
                       : Spawn(program, Ranks(ranks));
  EXPECT_TRUE(status.ok()) << status;
  return run;
}

TEST(LoopOptimizerTest, ARunThatIsLoadedHasTheBitsOfOneThatWentOn) {
  struct Case {
    const char* name;
    MakeRule make;
    bool skips = true;
  };
  const auto skipping = [](auto options) {
    options.common.skip_nonfinite = true;
    return options;
  };
  const std::vector<Case> cases = {
      {"plain_sgd",
       [](const Trainable& model) {
         return std::make_unique<Sgd>(
             model, SgdOptions{/*lr=*/0.05, /*momentum=*/0.9});
       },
       /*skips=*/false},
      {"plain_adamw",
       [](const Trainable& model) {
         return std::make_unique<Adam>(model, nn::AdamWDefaults());
       },
       /*skips=*/false},
      {"sgd",
       [&](const Trainable& model) {
         return std::make_unique<Sgd>(
             model, skipping(SgdOptions{/*lr=*/0.05, /*momentum=*/0.9}));
       }},
      {"dampened",
       [&](const Trainable& model) {
         return std::make_unique<Sgd>(
             model, skipping(SgdOptions{/*lr=*/0.05, /*momentum=*/0.9,
                                        /*dampening=*/0.5}));
       }},
      {"adamw",
       [&](const Trainable& model) {
         auto options = skipping(nn::AdamWDefaults());
         options.lr = 0.01;
         options.common.clip_grad_norm = 1;
         return std::make_unique<Adam>(model, options);
       }},
      {"amsgrad",
       [&](const Trainable& model) {
         AdamOptions options;
         options.lr = 0.01;
         options.amsgrad = true;
         return std::make_unique<Adam>(model, skipping(options),
                                       std::vector<std::string>{"fc.*"});
       }},
  };
  for (const Case& each : cases) {
    for (const int ranks : {1, 2}) {
      SCOPED_TRACE(absl::StrCat(each.name, " on ", ranks));
      const std::string path = absl::StrCat(testing::TempDir(), "/", each.name,
                                            ranks, ".safetensors");
      const auto train = [&](int from, int to,
                             std::optional<std::uint64_t> seed = {}) {
        return TrainedFrom(seed, ranks, each.make, each.skips, path, from, to,
                           /*saves=*/to < kSteps);
      };
      const TrainedRun whole = train(0, kSteps);
      train(0, 3);
      const TrainedRun resumed = train(3, kSteps);
      for (const float value : whole.values) ASSERT_TRUE(std::isfinite(value));
      EXPECT_EQ(resumed.values, whole.values);
      EXPECT_EQ(resumed.states, whole.states);
      EXPECT_EQ(resumed.lr, whole.lr);
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        EXPECT_EQ(train(3, kSteps, seed).values, whole.values) << seed;
      }
    }
  }
}

TEST(LoopOptimizerTest, FilesHaveTheNamesOfPyTorch) {
  RunOn(1, [](Rank& rank) {
    const std::string path =
        absl::StrCat(testing::TempDir(), "/names.safetensors");
    auto model = rank.Make<Head>();
    Adam adam(model, {/*lr=*/0.5}, /*only=*/{"fc.*"});
    TrainHead(rank, model, adam);
    ReduceLROnPlateau plateau(adam);
    plateau.Step(0.25);
    Save(State().Add(model).Add(adam).Add(plateau), path);
    base::PosixFileSystem files;
    const auto file = base::OrThrow(nn::SafetensorsFile::Open(files, path));
    for (const char* name : {"fc.weight", "optimizer.fc.weight.exp_avg",
                             "optimizer.fc.bias.exp_avg_sq", "optimizer.step",
                             "optimizer.lr", "plateau.best"}) {
      EXPECT_NE(file.Find(name), nullptr) << name;
    }
    EXPECT_EQ(file.Find("optimizer.body.weight.exp_avg"), nullptr);

    // Another rule's file changes nothing.
    auto other = rank.Make<Head>();
    other->fc.weight().value.span<float>()[0] = 7;
    Sgd sgd(other, {/*lr=*/0.5, /*momentum=*/0.9}, /*only=*/{"fc.*"});
    EXPECT_THAT(
        base::Try([&] { Load(State().Add(other).Add(sgd), path); }).ToString(),
        AllOf(HasSubstr("missing: "),
              HasSubstr("optimizer.fc.weight.momentum_buffer"),
              HasSubstr("unexpected: "),
              HasSubstr("optimizer.fc.weight.exp_avg"),
              HasSubstr("plateau.best")));
    EXPECT_EQ(other->fc.weight().value.span<float>()[0], 7);
    EXPECT_EQ(sgd.steps(), 0);

    // Numbers that no run has.
    Sgd plain(rank.Make<Head>(), {/*lr=*/0.5});
    State wanted;
    wanted.Add(plain);
    Save(State()
             .Add("optimizer.step", -3)
             .Add("optimizer.draws", 0)
             .Add("optimizer.lr", 0.5)
             .Add("optimizer.lr_is_set", false),
         path);
    EXPECT_THAT(base::Try([&] { Load(wanted, path); }).ToString(),
                HasSubstr("has done -3 steps"));
  });
}

}  // namespace
}  // namespace troupe

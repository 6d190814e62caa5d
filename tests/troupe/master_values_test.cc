// f32 copies of 16-bit parameters (f32_master) after a program has changed the
// parameters: by files, collectives and hand.

#include "troupe/internal/master_values.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/modules/parameter_dtype.h"
#include "nn/ops/loss.h"
#include "tests/troupe/ranks.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

// Its weight is larger than the parts in which updates follow values.
struct Wide : nn::Net {
  nn::Linear& fc = Add<nn::Linear>("fc", 256, 160);
  Var Forward(Var x) override { return fc(x); }
};

Model<Wide> MakeModel(Rank& rank, DType dtype) {
  auto module = std::make_unique<Wide>();
  nn::SetParameterDType(*module, dtype);
  return rank.Place(std::move(module));
}

std::unique_ptr<Optimizer> MakeSgd(const Trainable& model) {
  SgdOptions options{/*lr=*/0.5, /*momentum=*/0.9};
  options.common.f32_master = true;
  return std::make_unique<Sgd>(model, options);
}

std::unique_ptr<Optimizer> MakeLamb(const Trainable& model) {
  nn::LambOptions options;
  options.common.f32_master = true;
  return std::make_unique<Lamb>(model, options);
}

// Trains one step.
void Train(Rank& rank, const Trainable& model, Optimizer& optimizer) {
  optimizer.ZeroGrad();
  const DType dtype = model.Parameters()[0]->dtype;
  nn::MeanSquaredError(model(rank.Randn({4, 256}, dtype)),
                       rank.Randn({4, 160}, dtype))
      .Backward();
  optimizer.Step();
}

// Makes a step of rate 0, which rounds the copies to the parameters.
void StepOfNoLength(Rank& rank, const Trainable& model, Optimizer& optimizer) {
  optimizer.set_lr(0);
  Train(rank, model, optimizer);
}

std::vector<float> Floats(const Var& values) {
  Var wide = values;
  if (values.dtype() != DType::kF32) {
    nn::Tensor copy = base::OrThrow(
        nn::Tensor::Create(values.tensor().shape(), DType::kF32,
                           values.context().kernels().allocator()));
    base::OrThrow(values.context().kernels().Copy(values.tensor(), copy));
    wide = Var(values.context(), copy);
  }
  const auto span = wide.tensor().span<float>();
  return {span.begin(), span.end()};
}

std::vector<float> WeightOf(Rank& rank, const Model<Wide>& model) {
  return Floats(Var(rank.context(), model->fc.weight().value));
}

// Returns the copies of fc.weight.
std::vector<float> MastersOf(Optimizer& optimizer) {
  State state;
  state.Add(optimizer);
  for (const StateEntry& entry : state.entries()) {
    if (entry.names[0] != "optimizer.fc.weight.master_value") continue;
    const auto span = entry.tensor.span<float>();
    return {span.begin(), span.end()};
  }
  return {};
}

std::vector<float> Rounded(Rank& rank, const std::vector<float>& values) {
  Var wide = rank.Zeros({static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), wide.tensor().data<float>());
  Var narrow = rank.Zeros(wide.tensor().shape(), DType::kBF16);
  Tensor to = narrow.tensor();
  base::OrThrow(rank.kernels().Copy(wide.tensor(), to));
  return Floats(narrow);
}

// Saves an f32 model, whose values bf16 cannot hold, and returns its weight.
std::vector<float> SaveF32(Rank& rank, const std::string& path) {
  auto model = MakeModel(rank, DType::kF32);
  Tensor weight = model->fc.weight().value;
  for (std::int64_t i = 0; i < weight.numel(); ++i) {
    weight.data<float>()[i] = 0.1f + 1e-5f * static_cast<float>(i);
  }
  if (rank.number() == 0) Save(model, path);
  Barrier(rank);
  return WeightOf(rank, model);
}

void ExpectOn(const std::vector<int>& ranks, const std::string& name,
              const std::function<void(Rank&, const std::string& path)>& run) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/", name, ".safetensors");
  const Program program = [&](Rank& rank) { run(rank, path); };
  for (const int number : ranks) {
    const absl::Status status = Spawn(program, Ranks(number));
    EXPECT_TRUE(status.ok()) << status;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const SimulatedRun run = Simulate(program, Ranks(number), {seed});
      EXPECT_TRUE(run.status.ok()) << run.status;
    }
  }
}

TEST(MasterValuesTest, ALoadedModelHasTheDigitsOfItsFile) {
  ExpectOn({1, 2}, "digits", [](Rank& rank, const std::string& path) {
    const std::vector<float> file = SaveF32(rank, path);
    ASSERT_NE(Rounded(rank, file), file);
    for (const auto& make : {MakeSgd, MakeLamb}) {
      for (const bool optimizer_first : {true, false}) {
        auto model = MakeModel(rank, DType::kBF16);
        DDP ddp(model);
        std::unique_ptr<Optimizer> optimizer;
        if (optimizer_first) {
          optimizer = make(ddp);
          Train(rank, ddp, *optimizer);
        }
        Load(ddp, path);
        EXPECT_EQ(WeightOf(rank, model), Rounded(rank, file));
        if (!optimizer_first) optimizer = make(ddp);
        EXPECT_EQ(MastersOf(*optimizer), file);
        StepOfNoLength(rank, ddp, *optimizer);
        EXPECT_EQ(WeightOf(rank, model), Rounded(rank, file));
        EXPECT_EQ(MastersOf(*optimizer), file);
      }
    }
    Barrier(rank);
  });
}

// The copies of a State's optimizer are its own, whatever the order.
TEST(MasterValuesTest, AStateHasTheCopiesOfItsOptimizer) {
  ExpectOn({1}, "state", [](Rank& rank, const std::string& path) {
    auto model = MakeModel(rank, DType::kBF16);
    const auto sgd = MakeSgd(model);
    sgd->set_lr(1e-3);
    for (int i = 0; i < 3; ++i) Train(rank, model, *sgd);
    const std::vector<float> masters = MastersOf(*sgd);
    Save(State().Add(*sgd).Add(model), path);
    ASSERT_NE(WeightOf(rank, model), masters);
    Train(rank, model, *sgd);
    Load(State().Add(*sgd).Add(model), path);
    EXPECT_EQ(MastersOf(*sgd), masters);
    StepOfNoLength(rank, model, *sgd);
    EXPECT_EQ(MastersOf(*sgd), masters);
  });
}

// The constructor of DDP gives all ranks the values of rank 0, and so does the
// optimizer with the digits that only rank 0 has.
TEST(MasterValuesTest, TheFirstValuesAreThoseOfRank0) {
  ExpectOn({2}, "rank0", [](Rank& rank, const std::string& path) {
    const std::vector<float> file = SaveF32(rank, path);
    auto model = MakeModel(rank, DType::kBF16);
    if (rank.number() == 0) Load(model, path);
    DDP ddp(model);
    const auto sgd = MakeSgd(ddp);
    EXPECT_EQ(MastersOf(*sgd), file);
    Barrier(rank);
  });
}

// Values that the program writes in any other way stay, in their own digits.
TEST(MasterValuesTest, CopiesFollowWhatTheProgramWrites) {
  ExpectOn({2}, "writes", [](Rank& rank, const std::string& path) {
    const std::vector<float> file = SaveF32(rank, path);
    for (const auto& make : {MakeSgd, MakeLamb}) {
      auto model = MakeModel(rank, DType::kBF16);
      DDP ddp(model);
      const auto optimizer = make(ddp);
      optimizer->set_lr(1e-3);
      Train(rank, ddp, *optimizer);
      const std::vector<float> trained = MastersOf(*optimizer);
      ASSERT_NE(trained, Rounded(rank, trained));

      // One element by hand: all others keep their digits.
      Tensor weight = model->fc.weight().value;
      const std::int64_t last = weight.numel() - 1;
      Tensor element = weight.FlatView(last, {1});
      base::OrThrow(rank.kernels().Fill(7, element));
      StepOfNoLength(rank, ddp, *optimizer);
      std::vector<float> written = trained;
      written[last] = 7;
      EXPECT_EQ(MastersOf(*optimizer), written);
      EXPECT_EQ(WeightOf(rank, model), Rounded(rank, written));

      // A broadcast of what rank 1 alone has written.
      if (rank.number() == 1) base::OrThrow(rank.kernels().Fill(3, weight));
      rank.world().Broadcast(weight, /*root=*/1);
      StepOfNoLength(rank, ddp, *optimizer);
      const std::vector<float> threes(weight.numel(), 3);
      EXPECT_EQ(MastersOf(*optimizer), threes);
      EXPECT_EQ(WeightOf(rank, model), threes);

      // A bare module, of which Load() knows no copies.
      Load(*model, path);
      StepOfNoLength(rank, ddp, *optimizer);
      EXPECT_EQ(MastersOf(*optimizer), Rounded(rank, file));
    }
    Barrier(rank);
  });
}

// --- Stages of a pipeline ---

using NamedValues = std::map<std::string, std::vector<float>>;

PipelineParallel MakePipeline(Rank& rank, DType dtype) {
  PipelineOptions options;
  options.cuts = {3};
  options.micro_batches = 2;
  options.batch = {4, 6};
  options.dtype = dtype;
  return PipelineParallel(
      rank,
      [dtype] {
        auto model = nn::MakeMlp({6, 8, 3}, {});
        nn::SetParameterDType(*model, dtype);
        return model;
      },
      options);
}

// Makes a step of the loop on the same batch, and returns its loss.
double TrainStages(Rank& rank, PipelineParallel& model, Optimizer& optimizer,
                   DType dtype) {
  Var x = rank.Zeros({4, 6}, dtype);
  for (int i = 0; i < 4; ++i) {
    Tensor row = x.tensor().Slice(i, i + 1);
    base::OrThrow(rank.kernels().Fill(0.3 + 0.1 * i, row));
  }
  Var y = rank.Zeros({4}, DType::kI64);
  y.tensor().data<std::int64_t>()[1] = 2;
  optimizer.ZeroGrad();
  const double loss = model.Run(x, y, nn::ops::CrossEntropyLoss());
  optimizer.Step();
  return loss;
}

std::unique_ptr<Optimizer> MakeStageSgd(const PipelineParallel& model) {
  SgdOptions options{/*lr=*/0.01, /*momentum=*/0.9};
  options.common.f32_master = true;
  return std::make_unique<Sgd>(model, options);
}

// Returns the optimizer's copies by the names of their parameters.
NamedValues StageMastersOf(Optimizer& optimizer) {
  State state;
  state.Add(optimizer);
  NamedValues masters;
  for (const StateEntry& entry : state.entries()) {
    absl::string_view name = entry.names[0];
    if (!absl::ConsumeSuffix(&name, ".master_value")) continue;
    absl::ConsumePrefix(&name, "optimizer.");
    const auto span = entry.tensor.span<float>();
    masters[std::string(name)] = {span.begin(), span.end()};
  }
  return masters;
}

NamedValues ParametersOf(Rank& rank, const PipelineParallel& model) {
  NamedValues values;
  for (const nn::Parameter* parameter : model.Parameters()) {
    values[parameter->name] = Floats(Var(rank.context(), parameter->value));
  }
  return values;
}

// Runs the program on two stages, of one replica and of two, in threads and
// under seeds; `path` differs on all ranks.
void ExpectOnStages(
    const std::string& name,
    const std::function<void(Rank&, const std::string& path)>& run) {
  const Program program = [&](Rank& rank) {
    run(rank, absl::StrCat(testing::TempDir(), "/", name, rank.number(),
                           ".safetensors"));
  };
  for (const int dp : {1, 2}) {
    SpawnOptions options = Ranks(2 * dp);
    options.mesh = pipeline::Mesh(dp, /*pp=*/2);
    const absl::Status status = Spawn(program, options);
    EXPECT_TRUE(status.ok()) << status;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const SimulatedRun simulated = Simulate(program, options, {seed});
      EXPECT_TRUE(simulated.status.ok()) << simulated.status;
    }
  }
}

void AddAll(const PipelineParallel& model, Optimizer& optimizer, State& state) {
  model.AddTo(state);
  state.Add(optimizer);
}

// A run of 16-bit stages that is loaded has the bits of one that went on.
TEST(MasterValuesTest, StagesGoOnWithTheirCopies) {
  ExpectOnStages("stages", [](Rank& rank, const std::string& path) {
    constexpr DType kDType = DType::kBF16;
    std::vector<double> whole, loaded;
    NamedValues whole_masters, at_save;
    {
      PipelineParallel model = MakePipeline(rank, kDType);
      const auto sgd = MakeStageSgd(model);
      for (int i = 0; i < 3; ++i) TrainStages(rank, model, *sgd, kDType);
      State state;
      AddAll(model, *sgd, state);
      Save(state, path);
      at_save = StageMastersOf(*sgd);
      ASSERT_FALSE(at_save.empty());
      ASSERT_NE(at_save, ParametersOf(rank, model));
      for (int i = 0; i < 3; ++i) {
        whole.push_back(TrainStages(rank, model, *sgd, kDType));
      }
      whole_masters = StageMastersOf(*sgd);
    }
    PipelineParallel model = MakePipeline(rank, kDType);
    const auto sgd = MakeStageSgd(model);
    State state;
    AddAll(model, *sgd, state);
    Load(state, path);
    EXPECT_EQ(StageMastersOf(*sgd), at_save);
    for (int i = 0; i < 3; ++i) {
      loaded.push_back(TrainStages(rank, model, *sgd, kDType));
    }
    EXPECT_EQ(loaded, whole);
    EXPECT_EQ(StageMastersOf(*sgd), whole_masters);
  });
}

// Copies have the digits of an f32 file, whichever of optimizer and file is
// first.
TEST(MasterValuesTest, StagesHaveTheDigitsOfTheirFile) {
  ExpectOnStages("digits", [](Rank& rank, const std::string& path) {
    NamedValues file;
    {
      const PipelineParallel wide = MakePipeline(rank, DType::kF32);
      State state;
      wide.AddTo(state);
      Save(state, path);
      file = ParametersOf(rank, wide);
    }
    for (const bool optimizer_first : {true, false}) {
      PipelineParallel model = MakePipeline(rank, DType::kBF16);
      std::unique_ptr<Optimizer> sgd;
      if (optimizer_first) {
        sgd = MakeStageSgd(model);
        TrainStages(rank, model, *sgd, DType::kBF16);
      }
      State state;
      model.AddTo(state);
      Load(state, path);
      ASSERT_NE(ParametersOf(rank, model), file);
      if (!optimizer_first) sgd = MakeStageSgd(model);
      EXPECT_EQ(StageMastersOf(*sgd), file);
      sgd->set_lr(0);
      TrainStages(rank, model, *sgd, DType::kBF16);
      EXPECT_EQ(StageMastersOf(*sgd), file);
    }
  });
}

}  // namespace
}  // namespace troupe

// Pipelines in loops of one's own have the bits of their job, whatever the
// schedule, in threads, in processes and under seeds; and their mistakes have
// clear errors.

#include "troupe/pipeline_parallel.h"

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "pipeline/schedules/schedules.h"
#include "tests/base/seeds.h"
#include "tests/troupe/digits_loop.h"
#include "tests/troupe/queued_ranks.h"
#include "tests/troupe/threads_as_processes.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kSeeds = 40;

std::unique_ptr<nn::Sequential> MakeStages() {
  return nn::MakeMlp({784, 24, 16, 12, 10}, {});
}

// The same with a layer for each of 8 stages.
std::unique_ptr<nn::Sequential> MakeDeepModel() {
  return nn::MakeMlp({784, 24, 16, 12, 12, 12, 12, 12, 10}, {});
}

// Paths of the layers with which the stages after the first begin, of 1, 2, 4
// or 8 stages.
std::vector<pipeline::Cut> CutsInto(int stages) {
  if (stages == 1) return {};
  if (stages == 2) return {4};
  if (stages == 4) return {2, 4, 6};
  return {2, 4, 6, 8, 10, 12, 14};
}

struct Way {
  std::string schedule = "1f1b";
  int dp = 1;
  int pp = 2;
  int chunks = 1;  // stages of a rank
  Rule rule = Rule::kSgd;
  double clip_grad_norm = 0;
  int micro_batches = 4;
};

actors::JobModel ModelOf(const Way& way) {
  if (way.pp * way.chunks > 4) return MakeDeepModel;
  return MakeStages;
}

std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << way.schedule << ", dp=" << way.dp << " pp=" << way.pp
             << ", rule " << static_cast<int>(way.rule) << ", clipping at "
             << way.clip_grad_norm;
}

nn::SgdOptions SgdOf(const Way& way) {
  nn::SgdOptions options{/*lr=*/0.02, /*momentum=*/0.9};
  options.common.clip_grad_norm = way.clip_grad_norm;
  return options;
}

nn::AdamOptions AdamOf(const Way& way) {
  nn::AdamOptions options = nn::AdamWDefaults();
  options.common.clip_grad_norm = way.clip_grad_norm;
  return options;
}

std::vector<double> JobLosses(const Way& way) {
  actors::JobSpec spec = DigitsJob(way.rule, /*ranks=*/1);
  spec.model = ModelOf(way);
  if (way.rule == Rule::kSgd) {
    spec.optimizer = SgdOf(way);
  } else {
    spec.optimizer = AdamOf(way);
  }
  spec.plan.mesh = pipeline::Mesh(way.dp, way.pp);
  spec.plan.cuts = CutsInto(way.pp * way.chunks);
  spec.plan.micro_batch_size = kDigitsBatch / way.dp / way.micro_batches;
  spec.plan.virtual_stages = way.chunks;
  const absl::Status status = pipeline::SetSchedule(way.schedule, spec.plan);
  EXPECT_TRUE(status.ok()) << status;
  return DigitsJobLosses(spec);
}

PipelineOptions OptionsOf(const Way& way) {
  PipelineOptions options;
  options.cuts = CutsInto(way.pp * way.chunks);
  options.micro_batches = way.micro_batches;
  options.batch = {kDigitsBatch / way.dp, 28, 28, 1};
  options.schedule = way.schedule;
  return options;
}

SpawnOptions RanksOf(const Way& way) {
  SpawnOptions options;
  options.ranks = way.dp * way.pp;
  options.mesh = pipeline::Mesh(way.dp, way.pp);
  return options;
}

Optimizer MakeOptimizer(const PipelineParallel& model, const Way& way) {
  if (way.rule == Rule::kSgd) return Sgd(model, SgdOf(way));
  return Adam(model, AdamOf(way));
}

DataLoader Digits(Rank& rank, const Way& way) {
  return DataLoader(rank, DigitsJob(way.rule, 1).train,
                    {kDigitsBatch / way.dp, /*shuffle=*/true});
}

// A loop of `steps` steps, whose losses every rank appends to `losses`: its own
// vector.
void Train(Rank& rank, PipelineParallel& model, Optimizer& optimizer,
           const Way& way, int steps, std::vector<double>* losses) {
  DataLoader loader = Digits(rank, way);
  for (auto [x, y] : loader) {
    if (steps-- == 0) break;
    optimizer.ZeroGrad();
    losses->push_back(model.Run(x, y, nn::ops::CrossEntropyLoss()));
    optimizer.Step();
  }
}

Program Loop(const Way& way, std::vector<std::vector<double>>* losses) {
  losses->assign(way.dp * way.pp, {});
  return [=](Rank& rank) {
    PipelineParallel model(rank, ModelOf(way), OptionsOf(way));
    Optimizer optimizer = MakeOptimizer(model, way);
    Train(rank, model, optimizer, way, kDigitsSteps, &(*losses)[rank.number()]);
  };
}

void ExpectJobsBits(const Way& way) {
  std::vector<std::vector<double>> losses;
  const absl::Status status = Spawn(Loop(way, &losses), RanksOf(way));
  ASSERT_TRUE(status.ok()) << status << " for " << way;
  EXPECT_THAT(losses, Each(JobLosses(way))) << way;
}

TEST(PipelineParallelTest, ALoopHasTheLossesOfItsJob) {
  for (const int dp : {1, 2}) {
    Way way;
    way.dp = dp;
    ExpectJobsBits(way);
  }
}

TEST(PipelineParallelTest, EveryScheduleHasTheLossesOfItsJob) {
  for (const pipeline::NamedSchedule& schedule : pipeline::NamedSchedules()) {
    for (const int pp : {2, 4}) {
      for (const int dp : {1, 2}) {
        Way way;
        way.schedule = schedule.name;
        way.chunks = schedule.chunks != 1 ? 2 : 1;
        way.pp = pp;
        way.dp = dp;
        way.micro_batches = 2 * pp;
        ExpectJobsBits(way);
      }
    }
  }
}

TEST(PipelineParallelTest, OneRankAddsUpMicroBatches) {
  Way way;
  way.pp = 1;
  ExpectJobsBits(way);
}

TEST(PipelineParallelTest, AdamAndClipping) {
  for (const Rule rule : {Rule::kSgd, Rule::kAdamW}) {
    for (const double clip_grad_norm : {0.0, 0.5}) {
      Way way;
      way.dp = 2;
      way.rule = rule;
      way.clip_grad_norm = clip_grad_norm;
      ExpectJobsBits(way);
    }
  }
}

TEST(PipelineParallelTest, SeedsChangeNoBit) {
  for (const std::string schedule : {"1f1b", "zb_v"}) {
    Way way;
    way.schedule = schedule;
    way.chunks = schedule == "zb_v" ? 2 : 1;
    way.dp = 2;
    const std::vector<double> job = JobLosses(way);
    for (const std::uint64_t seed : Seeds(kSeeds)) {
      std::vector<std::vector<double>> losses;
      const SimulatedRun run =
          Simulate(Loop(way, &losses), RanksOf(way),
                   {seed, /*message_time_max=*/absl::Milliseconds(10)});
      ASSERT_TRUE(run.status.ok()) << run.status << ReplayCommand(seed);
      ASSERT_THAT(losses, Each(job)) << schedule << ReplayCommand(seed);
    }
  }
}

TEST(PipelineParallelTest, ProcessesHaveTheSameBits) {
  Way way;
  way.dp = 2;
  std::vector<std::vector<double>> losses;
  SpawnOptions options = RanksOf(way);
  EXPECT_THAT(Messages(RunIn({2, 2}, Loop(way, &losses), options)), Each(""));
  EXPECT_THAT(losses, Each(JobLosses(way)));
}

// Stages across processes, and two of them in one.
TEST(PipelineParallelTest, StagesInDifferentProcesses) {
  Way way;
  way.schedule = "interleaved_1f1b";
  way.chunks = 2;
  std::vector<std::vector<double>> losses;
  EXPECT_THAT(Messages(RunIn({1, 1}, Loop(way, &losses), RanksOf(way))),
              Each(""));
  EXPECT_THAT(losses, Each(JobLosses(way)));
}

TEST(PipelineParallelTest, QueuedDevicesHaveTheBitsOfCpus) {
  for (const std::string schedule : {"1f1b", "zb_v"}) {
    Way way;
    way.schedule = schedule;
    way.chunks = schedule == "zb_v" ? 2 : 1;
    way.dp = 2;
    way.clip_grad_norm = 0.5;
    std::vector<std::vector<double>> cpus, devices;
    SpawnOptions options = PlainRanks(way.dp * way.pp);
    options.mesh = pipeline::Mesh(way.dp, way.pp);
    absl::Status status = Spawn(Loop(way, &cpus), options);
    ASSERT_TRUE(status.ok()) << status;
    for (const std::uint64_t seed : {1, 2, 3}) {
      options = QueuedRanks(way.dp * way.pp, seed);
      options.mesh = pipeline::Mesh(way.dp, way.pp);
      status = Spawn(Loop(way, &devices), options);
      ASSERT_TRUE(status.ok()) << status << ", seed " << seed;
      EXPECT_EQ(devices, cpus) << schedule << ", seed " << seed;
    }
  }
}

// Evaluations and outputs of a pipeline are those of the whole model.
TEST(PipelineParallelTest, EvaluatesAndPredicts) {
  const auto run = [](const Way& way, SpawnOptions options,
                      std::vector<double>* losses,
                      std::vector<float>* outputs) {
    const Program program = [=](Rank& rank) {
      PipelineParallel model(rank, MakeStages, OptionsOf(way));
      Optimizer optimizer = MakeOptimizer(model, way);
      DataLoader loader = Digits(rank, way);
      const auto [x, y] = *loader.begin();
      for (int step = 0; step < 3; ++step) {
        const double loss = model.Evaluate(x, y, nn::ops::CrossEntropyLoss());
        const Tensor output = model.Predict(x);
        EXPECT_EQ(output.defined(), model.is_last());
        if (rank.number() == 0) losses->push_back(loss);
        if (output.defined()) *outputs = ValuesOn(rank, output);
        EXPECT_EQ(model.Run(x, y, nn::ops::CrossEntropyLoss()), loss);
        optimizer.Step();
      }
    };
    options.mesh = pipeline::Mesh(way.dp, way.pp);
    const absl::Status status = Spawn(program, options);
    EXPECT_TRUE(status.ok()) << status;
  };
  Way whole, cut;
  whole.pp = 1;
  std::vector<double> whole_losses, cut_losses;
  std::vector<float> whole_outputs, cut_outputs;
  run(whole, PlainRanks(1), &whole_losses, &whole_outputs);
  run(cut, PlainRanks(2), &cut_losses, &cut_outputs);
  EXPECT_EQ(whole_losses.size(), 3u);
  EXPECT_LT(whole_losses[2], whole_losses[0]);
  EXPECT_EQ(cut_losses, whole_losses);
  EXPECT_EQ(whole_outputs.size(), std::size_t{kDigitsBatch * 10});
  EXPECT_EQ(cut_outputs, whole_outputs);
  cut_losses.clear();
  run(cut, QueuedRanks(2, /*seed=*/7), &cut_losses, &cut_outputs);
  EXPECT_EQ(cut_losses, whole_losses);
  EXPECT_EQ(cut_outputs, whole_outputs);
}

// Each rank saves its stages; a run that is loaded goes on with the same bits.
TEST(PipelineParallelTest, SavesAndLoads) {
  Way way;
  way.rule = Rule::kAdamW;
  const std::string folder = ::testing::TempDir();
  std::vector<double> whole, loaded;
  const auto train = [&](bool loads) {
    return [&, loads](Rank& rank) {
      PipelineParallel model(rank, MakeStages, OptionsOf(way));
      Optimizer optimizer = MakeOptimizer(model, way);
      State state;
      model.AddTo(state);
      state.Add(optimizer);
      const std::string path =
          absl::StrCat(folder, "/stage", rank.number(), ".safetensors");
      std::vector<double> losses;
      if (loads) {
        Load(state, path);
      } else {
        Train(rank, model, optimizer, way, 3, &losses);
        Save(state, path);
      }
      losses.clear();
      Train(rank, model, optimizer, way, 3, &losses);
      EXPECT_EQ(optimizer.steps(), 6);
      if (rank.number() == 0) (loads ? loaded : whole) = losses;
    };
  };
  absl::Status status = Spawn(train(/*loads=*/false), RanksOf(way));
  ASSERT_TRUE(status.ok()) << status;
  status = Spawn(train(/*loads=*/true), RanksOf(way));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(whole.size(), 3u);
  EXPECT_EQ(loaded, whole);
}

// --- Mistakes ---

// Returns the error of a program with these options.
std::string ErrorOf(
    const Way& way, const std::function<void(PipelineOptions&)>& edit,
    const std::function<void(Rank&, PipelineParallel&)>& call = nullptr) {
  PipelineOptions options = OptionsOf(way);
  edit(options);
  const absl::Status status = Spawn(
      [&](Rank& rank) {
        PipelineParallel model(rank, MakeStages, options);
        if (call) call(rank, model);
      },
      RanksOf(way));
  return std::string(status.message());
}

TEST(PipelineParallelTest, TheMeshMustHaveTheStages) {
  Way way;
  way.dp = 2, way.pp = 1;
  EXPECT_THAT(
      ErrorOf(way, [](PipelineOptions& options) { options.cuts = {4}; }),
      AllOf(HasSubstr("makes 2 stages"), HasSubstr("SpawnOptions::mesh"),
            HasSubstr("pipeline::Mesh(/*dp=*/1, /*pp=*/2)")));
}

TEST(PipelineParallelTest, OptionsThatDoNotFit) {
  const Way way;
  EXPECT_THAT(
      ErrorOf(way, [](PipelineOptions& options) { options.cuts = {"layer3"}; }),
      HasSubstr("layer3"));
  EXPECT_THAT(
      ErrorOf(way, [](PipelineOptions& options) { options.micro_batches = 3; }),
      AllOf(HasSubstr("micro_batches = 3"), HasSubstr("16 samples")));
  EXPECT_THAT(
      ErrorOf(way, [](PipelineOptions& options) { options.batch = {}; }),
      HasSubstr("PipelineOptions.batch"));
  EXPECT_THAT(
      ErrorOf(way, [](PipelineOptions& options) { options.schedule = "2f2b"; }),
      AllOf(HasSubstr("2f2b"), HasSubstr("1f1b")));
}

TEST(PipelineParallelTest, CallsThatDoNotFit) {
  const Way way;
  const auto none = [](PipelineOptions&) {};
  const auto loss = nn::ops::CrossEntropyLoss();
  EXPECT_THAT(ErrorOf(way, none,
                      [&](Rank& rank, PipelineParallel& model) {
                        model.Run(rank.Zeros({8, 28, 28, 1}),
                                  rank.Randint(0, 10, {8}), loss);
                      }),
              HasSubstr("PipelineOptions.batch is [16, 28, 28, 1]"));
  const auto run = [&](Rank& rank, PipelineParallel& model) {
    model.Run(rank.Zeros({16, 28, 28, 1}), rank.Randint(0, 10, {16}), loss);
  };
  EXPECT_THAT(ErrorOf(way, none,
                      [&](Rank& rank, PipelineParallel& model) {
                        run(rank, model);
                        run(rank, model);
                      }),
              HasSubstr("call Step() first"));
  EXPECT_THAT(ErrorOf(way, none,
                      [&](Rank&, PipelineParallel& model) {
                        Sgd sgd(model, {/*lr=*/0.1});
                        sgd.Step();
                      }),
              HasSubstr("call Run() first"));
  // Gradients without an optimizer are no mistake.
  EXPECT_EQ(ErrorOf(way, none,
                    [&](Rank& rank, PipelineParallel& model) {
                      run(rank, model);
                      for (const nn::Parameter* p : model.Parameters()) {
                        EXPECT_TRUE(p->grad.defined()) << p->name;
                      }
                    }),
            "");
}

TEST(PipelineParallelTest, RanksThatDiffer) {
  const Way way;
  const absl::Status status = Spawn(
      [&](Rank& rank) {
        PipelineOptions options = OptionsOf(way);
        if (rank.number() == 1) options.micro_batches = 2;
        PipelineParallel model(rank, MakeStages, options);
      },
      RanksOf(way));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank 1 has another model or other options"));
}

}  // namespace
}  // namespace troupe

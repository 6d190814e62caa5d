#include "troupe/trainer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "actors/sim/simulation.h"
#include "base/files/file_system.h"
#include "base/status_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/net.h"
#include "nn/ops/loss.h"
#include "tests/actors/test_job.h"
#include "tests/base/fresh_path.h"
#include "tests/troupe/trainer_task.h"
#include "tools/trainer/run/spec_builder.h"
#include "troupe/trainer/trainer_job.h"

namespace troupe {
namespace {

using actors::FileBytes;
using actors::JobSpec;
using actors::Reports;
using actors::ReportsOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Returns the job that the trainer makes of the same task, with further keys.
JobSpec ConfiguredJob(const std::string& train, const std::string& more) {
  const std::string toml = absl::StrCat(
      "[model]\nkind = \"mlp\"\nwidths = [12]\n[data]\ntrain_count = ", kTrain,
      "\ntest_count = ", kTest, "\n[train]\nseed = 3\n", train,
      "[optimizer]\nlr = 0.05\nmomentum = 0.9\n", more);
  static base::PosixFileSystem& files = *new base::PosixFileSystem();
  const tools::LoadedConfig loaded =
      tools::ParseConfig(toml, "run.toml", {}).value();
  const data::DataSplits splits =
      tools::OpenData(loaded, files, [](const std::string&) {}).value();
  return tools::BuildSpec(loaded, splits, files).value();
}

std::vector<double> EvaluatedLosses(const Reports& reports) {
  std::vector<double> losses;
  for (const auto& report : reports.evaluations) losses.push_back(report.loss);
  return losses;
}

// --- The bits are those of the configuration's job ---

TEST(TrainerTest, HasTheBitsOfAConfiguration) {
  for (const int dp : {1, 2}) {
    const std::string folder = absl::StrCat(base::FreshPath(), dp);
    JobSpec spec = ConfiguredJob(
        absl::StrCat("steps = 24\nglobal_batch_size = 20\nmicro_batch_size = ",
                     10 / dp, "\neval_every = 6\n"),
        absl::StrCat("clip_grad_norm = 0.5\n[mesh]\ndp = ", dp,
                     "\n[checkpoint]\ndir = \"", folder, "-config\"\n"));
    const Reports want = ReportsOf(spec);

    const auto recorder = std::make_shared<Recorder>();
    TrainerOptions options = QuietTrainer();
    options.devices = dp;
    options.max_steps = 24;
    options.accumulate_grad_batches = 2;
    options.gradient_clip_val = 0.5;
    options.val_check_interval = 12;
    options.callbacks = {recorder, std::make_shared<ModelCheckpoint>(folder)};
    Trainer trainer(options);
    ExpectOk(trainer.Fit(DigitsTask(), Train(10 / dp), Val()));
    EXPECT_EQ(recorder->losses, want.losses()) << dp;
    EXPECT_EQ(recorder->val_losses, EvaluatedLosses(want)) << dp;
    EXPECT_THAT(recorder->evaluated, ElementsAre(6, 12, 18, 24));
    const std::string last = trainer.result().checkpoint;
    ASSERT_EQ(want.checkpoints.size(), 1u);
    for (const char* file : {kModelFile, kStatesFile}) {
      EXPECT_EQ(FileBytes(last + file), FileBytes(want.checkpoints[0] + file))
          << file << " of dp " << dp;
    }
  }
}

// Each precision, with the length in epochs.
TEST(TrainerTest, HasItsBitsInEveryPrecision) {
  const std::pair<const char*, const char*> precisions[] = {
      {"64-true", "precision = \"f64\"\ndevice = \"reference:0\"\n"},
      {"bf16-mixed", "precision = \"bf16\"\n"},
      {"16-mixed", "precision = \"f16\"\n"},
  };
  for (const auto& [name, keys] : precisions) {
    const Reports want = ReportsOf(ConfiguredJob(
        absl::StrCat("epochs = 1\nglobal_batch_size = 20\n", keys), ""));
    const auto recorder = std::make_shared<Recorder>();
    TrainerOptions options = QuietTrainer();
    options.max_epochs = 1;
    options.precision = name;
    options.callbacks = {recorder};
    ExpectOk(Trainer(options).Fit(DigitsTask(), Train(20), Val()));
    EXPECT_EQ(recorder->losses, want.losses()) << name;
    EXPECT_EQ(recorder->val_losses, EvaluatedLosses(want)) << name;
  }
}

TEST(TrainerTest, ShardedReplicasHaveTheBitsOfDdp) {
  const auto recorder = std::make_shared<Recorder>();
  TrainerOptions options = QuietTrainer();
  options.devices = 2;
  options.max_steps = 8;
  options.callbacks = {recorder};
  ExpectOk(Trainer(options).Fit(DigitsTask(), Train(10), Val()));
  const Recorder want = *recorder;
  const std::pair<const char*, int> strategies[] = {{"deepspeed_stage_1", 1},
                                                    {"deepspeed_stage_2", 2},
                                                    {"deepspeed_stage_3", 3},
                                                    {"fsdp", 3}};
  for (const auto& [strategy, stage] : strategies) {
    *recorder = Recorder();
    options.strategy = strategy;
    EXPECT_EQ(
        TrainerJob(options, DigitsTask(), Train(10), Val())->plan.zero_stage,
        stage);
    ExpectOk(Trainer(options).Fit(DigitsTask(), Train(10), Val()));
    EXPECT_EQ(recorder->losses, want.losses) << strategy;
    EXPECT_EQ(recorder->val_losses, want.val_losses) << strategy;
  }
}

TEST(TrainerTest, APipelineHasItsBits) {
  const Reports want = ReportsOf(
      ConfiguredJob("steps = 8\nglobal_batch_size = 16\nmicro_batch_size = 4\n",
                    "[mesh]\npp = 2\nschedule = \"gpipe\"\n"));
  const auto recorder = std::make_shared<Recorder>();
  TrainerOptions options = QuietTrainer();
  options.devices = 2;
  options.strategy = "pipeline:gpipe";
  options.accumulate_grad_batches = 4;
  options.max_steps = 8;
  options.callbacks = {recorder};
  ExpectOk(Trainer(options).Fit(DigitsTask(), Train(4)));
  EXPECT_EQ(recorder->losses, want.losses());
}

TEST(TrainerTest, ATrainingStepHasTheBitsOfTheLoss) {
  const auto recorder = std::make_shared<Recorder>();
  TrainerOptions options = QuietTrainer();
  options.devices = 2;
  options.max_epochs = 2;
  options.callbacks = {recorder};
  Task task = DigitsTask();
  ExpectOk(Trainer(options).Fit(task, Train(10), Val()));
  const Recorder want = *recorder;
  EXPECT_THAT(want.epoch_ends, ElementsAre(10, 20));
  *recorder = Recorder();
  task.loss = nullptr;
  task.training_step = [](nn::Context& ctx, nn::Module& model,
                          const data::Batch& batch) {
    const nn::Var y = model(nn::Var(ctx, batch.inputs));
    return nn::CrossEntropy(y, nn::Var(ctx, batch.targets));
  };
  ExpectOk(Trainer(options).Fit(task, Train(10), Val()));
  EXPECT_EQ(recorder->losses, want.losses);
  EXPECT_EQ(recorder->val_losses, want.val_losses);
}

// Two nodes, which meet over TCP, and one.
TEST(TrainerTest, NodesHaveTheBitsOfOne) {
  const auto recorder = std::make_shared<Recorder>();
  TrainerOptions options = QuietTrainer();
  options.devices = 2;
  options.max_steps = 4;
  options.callbacks = {recorder};
  ExpectOk(Trainer(options).Fit(DigitsTask(), Train(10), Val()));
  const Recorder want = *recorder;
  *recorder = Recorder();
  options.devices = 1;
  options.num_nodes = 2;
  std::promise<int> port;
  const auto node = [&](int number, actors::ClusterOptions cluster) {
    cluster.process = number;
    cluster.processes = 2;
    cluster.insecure = true;
    TrainerOptions own = options;
    own.cluster = cluster;
    Trainer trainer(own);
    EXPECT_EQ(trainer.is_global_zero(), number == 0);
    const absl::Status status = trainer.Fit(DigitsTask(), Train(10), Val());
    EXPECT_EQ(trainer.is_global_zero(), number == 0);
    EXPECT_EQ(trainer.global_rank(), number);
    EXPECT_EQ(trainer.node_rank(), number);
    EXPECT_EQ(trainer.local_rank(), 0);
    EXPECT_EQ(trainer.world_size(), 2);
    EXPECT_EQ(trainer.estimated_stepping_batches(), 4);
    return status;
  };
  auto other = std::async(std::launch::async, [&] {
    actors::ClusterOptions cluster;
    cluster.master_port = port.get_future().get();
    return node(1, cluster);
  });
  actors::ClusterOptions first;
  first.on_listening = [&](int number) {
    port.set_value(number);
    return absl::OkStatus();
  };
  ExpectOk(node(0, first));
  ExpectOk(other.get());
  EXPECT_EQ(recorder->losses, want.losses);
  EXPECT_EQ(recorder->val_losses, want.val_losses);
}

// The simulator's ranks, under every seed.
TEST(TrainerTest, Simulated) {
  const auto recorder = std::make_shared<Recorder>();
  TrainerOptions options = QuietTrainer();
  options.devices = 2;
  options.max_steps = 4;
  options.val_check_interval = 2;
  options.callbacks = {recorder};
  ExpectOk(Trainer(options).Fit(DigitsTask(), Train(50), Val()));
  const Recorder want = *recorder;
  EXPECT_THAT(want.epoch_ends, ElementsAre(2, 4));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    *recorder = Recorder();
    const auto simulate = [&](const JobSpec& spec,
                              actors::JobObserver* observer) {
      actors::SimulationOptions simulated;
      simulated.seed = seed;
      actors::Simulation simulation(spec, simulated);
      auto result = simulation.Run(observer);
      ExpectOk(simulation.Check());
      return result;
    };
    ExpectOk(Trainer(options).FitBy(simulate, DigitsTask(), Train(50), Val()));
    ASSERT_EQ(recorder->losses, want.losses) << "seed " << seed;
    ASSERT_EQ(recorder->epoch_ends, want.epoch_ends) << "seed " << seed;
    ASSERT_EQ(recorder->val_losses, want.val_losses) << "seed " << seed;
    ASSERT_EQ(recorder->ends, 1);
  }
}

// --- Limits and lines ---

JobSpec SpecOf(const TrainerOptions& options, std::int64_t batch_size = 10) {
  const auto spec = TrainerJob(options, DigitsTask(), Train(batch_size), Val());
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.value();
}

TEST(TrainerTest, LimitsAreCountsOrFractions) {
  TrainerOptions options;
  options.devices = 2;
  options.max_epochs = 3;
  EXPECT_EQ(SpecOf(options).train->size(), kTrain);
  EXPECT_EQ(SpecOf(options).eval_every, 10);
  options.limit_train_batches = 4;
  options.limit_val_batches = 0.5;
  EXPECT_EQ(SpecOf(options).train->size(), 4 * 2 * 10);
  EXPECT_EQ(SpecOf(options).test->size(), 20);  // one of three batches
  EXPECT_EQ(SpecOf(options).eval_every, 4);
  options.check_val_every_n_epoch = 2;
  EXPECT_EQ(SpecOf(options).eval_every, 8);
  options.check_val_every_n_epoch = 1;
  options.val_check_interval = 0.5;
  EXPECT_EQ(SpecOf(options).eval_every, 2);
  options.limit_val_batches = 0;
  EXPECT_EQ(SpecOf(options).test, nullptr);
  EXPECT_EQ(SpecOf(options).epochs, 3);
  options.max_steps = 7;
  EXPECT_EQ(SpecOf(options).steps, 7);
  options.max_steps = 100;
  EXPECT_EQ(SpecOf(options).steps, 12);  // three epochs of four
  options = TrainerOptions();
  EXPECT_EQ(SpecOf(options).epochs, 1000);
  options.fast_dev_run = 2;
  EXPECT_EQ(SpecOf(options).steps, 2);
  EXPECT_EQ(SpecOf(options).test->size(), 20);
}

TEST(TrainerTest, AScheduleWithoutStepsEndsWithTheRun) {
  Task task = DigitsTask();
  nn::SgdOptions sgd{/*lr=*/1};
  sgd.common.schedule = nn::LrSchedule::Linear(/*steps=*/0);
  task.optimizer = sgd;
  struct Rates : Callback {
    void OnTrainBatchEnd(Trainer&, const StepReport& step) override {
      rates.push_back(step.lr);
    }
    std::vector<double> rates;
  };
  const auto rates = std::make_shared<Rates>();
  TrainerOptions options = QuietTrainer();
  options.max_steps = 4;
  options.callbacks = {rates};
  ExpectOk(Trainer(options).Fit(task, Train(10)));
  EXPECT_THAT(rates->rates, ElementsAre(1, 0.75, 0.5, 0.25));
}

TEST(TrainerTest, LogsStepsAndEvaluations) {
  std::vector<std::string> lines;
  TrainerOptions options = QuietTrainer();
  options.max_steps = 6;
  options.log_every_n_steps = 3;
  options.val_check_interval = 4;
  options.callbacks = {std::make_shared<LearningRateMonitor>()};
  options.logger = [&](const std::string& line) { lines.push_back(line); };
  Trainer trainer(options);
  ExpectOk(trainer.Fit(DigitsTask(), Train(10), Val()));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], HasSubstr("step 3: lr=0.05 train_accuracy="));
  EXPECT_THAT(lines[1], HasSubstr("step 4: val_accuracy="));
  EXPECT_THAT(lines[2], HasSubstr("step 6: lr=0.05 train_accuracy="));
  EXPECT_THAT(lines[3], HasSubstr("step 6: val_accuracy="));
  EXPECT_EQ(trainer.callback_metrics().at("val_loss"),
            trainer.result().evaluation.loss);
  EXPECT_EQ(trainer.global_step(), 6);
}

// --- Mistakes ---

std::string ErrorOf(const std::function<void(TrainerOptions&)>& edit,
                    std::int64_t batch_size = 10) {
  TrainerOptions options = QuietTrainer();
  options.max_steps = 1;
  edit(options);
  return std::string(
      Trainer(options).Fit(DigitsTask(), Train(batch_size), Val()).message());
}

TEST(TrainerTest, NamesTheOptionThatIsWrong) {
  using O = TrainerOptions;
  const auto expect = [](const char* words,
                         const std::function<void(O&)>& edit) {
    EXPECT_THAT(ErrorOf(edit), StartsWith(words));
  };
  expect("TrainerOptions.devices = 0: must be at least 1",
         [](O& o) { o.devices = 0; });
  expect(
      "TrainerOptions.strategy = \"deepspeed_stage_9\": ZeRO has the stages 1 "
      "to 3 here",
      [](O& o) { o.strategy = "deepspeed_stage_9"; });
  expect("TrainerOptions.strategy = \"fsdp_cpu_offload\": ZeRO has the stages",
         [](O& o) { o.strategy = "fsdp_cpu_offload"; });
  expect("TrainerOptions.strategy = \"horovod\": is no strategy; use \"ddp\"",
         [](O& o) { o.strategy = "horovod"; });
  expect("TrainerOptions.strategy = \"pipeline:2f2b\": ", [](O& o) {
    o.devices = 2;
    o.strategy = "pipeline:2f2b";
  });
  expect("TrainerOptions.strategy = \"pipeline:1f1b\" needs two ranks",
         [](O& o) { o.strategy = "pipeline:1f1b"; });
  expect("TrainerOptions.pipeline_stages = 2: the 3 ranks", [](O& o) {
    o.devices = 3;
    o.strategy = "pipeline:1f1b";
    o.pipeline_stages = 2;
  });
  expect("TrainerOptions.accelerator = \"tpu\": must be \"cpu\" or \"gpu\"",
         [](O& o) { o.accelerator = "tpu"; });
  expect("TrainerOptions.precision = \"8\": must be one of \"32-true\"",
         [](O& o) { o.precision = "8"; });
  expect("TrainerOptions.num_nodes = 2, and no launcher has started",
         [](O& o) { o.num_nodes = 2; });
  expect(
      "TrainerOptions.val_check_interval = 3: give batches in multiples of "
      "TrainerOptions.accumulate_grad_batches = 2",
      [](O& o) {
        o.accumulate_grad_batches = 2;
        o.val_check_interval = 3;
      });
  expect(
      "TrainerOptions.check_val_every_n_epoch = 2, and "
      "TrainerOptions.val_check_interval = 0.5 says otherwise",
      [](O& o) {
        o.check_val_every_n_epoch = 2;
        o.val_check_interval = 0.5;
      });
  expect("TrainerOptions.limit_train_batches = 1.5: give a number",
         [](O& o) { o.limit_train_batches = 1.5; });
  expect(
      "TrainerOptions.limit_train_batches = 0 of 200 samples leaves no "
      "whole step",
      [](O& o) { o.limit_train_batches = 0; });
  expect("TrainerOptions.gradient_clip_val = -1: give a limit above 0",
         [](O& o) { o.gradient_clip_val = -1; });
  expect("TrainerOptions.gradient_clip_algorithm = \"max\": must be",
         [](O& o) { o.gradient_clip_algorithm = "max"; });
  expect("TrainerOptions.ckpt_path = \"last\" is a checkpoint in the folder of",
         [](O& o) { o.ckpt_path = "last"; });
  expect("TrainerOptions.callbacks has a null pointer",
         [](O& o) { o.callbacks = {nullptr}; });
  expect("callbacks have the monitors \"val_loss\" and \"val_accuracy\"",
         [](O& o) {
           o.callbacks = {std::make_shared<EarlyStopping>("val_loss"),
                          std::make_shared<EarlyStopping>("val_accuracy")};
         });
  expect("monitor \"train_loss\" of a callback: must be \"val_loss\"",
         [](O& o) {
           o.callbacks = {std::make_shared<EarlyStopping>("train_loss")};
         });
  expect("EarlyStopping compares evaluations, and there are none", [](O& o) {
    o.limit_val_batches = 0;
    o.callbacks = {std::make_shared<EarlyStopping>("val_loss")};
  });
  EXPECT_THAT(ErrorOf([](O&) {}, /*batch_size=*/0),
              HasSubstr("FitData.batch_size = 0: must be at least 1"));
}

TEST(TrainerTest, NamesWhatATaskLacks) {
  const auto error_of = [](const Task& task,
                           TrainerOptions options = QuietTrainer()) {
    return std::string(Trainer(options).Fit(task, Train(10)).message());
  };
  Task task;
  EXPECT_THAT(error_of(task), HasSubstr("Task.model is not set"));
  task.model = DigitsTask().model;
  EXPECT_THAT(error_of(task), HasSubstr("Task.training_step are not set"));
  task.loss = DigitsTask().loss;
  EXPECT_THAT(error_of(task), HasSubstr("Task.optimizer is not set"));
  task.optimizer = [] { return std::make_unique<nn::Sgd>(nn::SgdOptions()); };
  TrainerOptions options = QuietTrainer();
  options.gradient_clip_val = 1;
  EXPECT_THAT(error_of(task, options),
              HasSubstr("gradient_clip_val = 1 needs options as "
                        "Task.optimizer"));
  options.gradient_clip_val = 0;
  options.precision = "16-mixed";
  EXPECT_THAT(error_of(task, options),
              HasSubstr("precision = \"16-mixed\" needs options"));
}

}  // namespace
}  // namespace troupe

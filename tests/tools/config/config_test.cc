// Tests of the configuration, with the whole text of every error.

#include "tools/trainer/config/config.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "tests/tools/config/config_fixture.h"

namespace troupe::tools {
namespace {

using List = std::vector<std::int64_t>;

// Returns the error of kShort with `line` as its third line, in section
// [train].
std::string TrainError(const std::string& line) {
  return ErrorOf(absl::StrCat(kShort, line, "\n"));
}

TEST(Config, DefaultsAreThoseOfTheStruct) {
  const TrainerConfig config = Parsed(kShort);
  EXPECT_EQ(config.job.steps, 10);
  EXPECT_EQ(config.job.plan.global_batch_size, 64);
  EXPECT_EQ(config.model.kind, "lenet");
  EXPECT_LT(config.job.plan.inline_bytes, 0);
  EXPECT_EQ(config.job.checkpoint.keep, 3);
}

TEST(Config, EveryTypeOfValue) {
  const TrainerConfig config = Parsed(R"(
[model]
kind = "mlp"
widths = [256, 128]
bias = false
[train]
epochs = 3
[optimizer]
lr = 0.1
momentum = 1          # a whole number is a number
[comm]
bucket_bytes = "4MiB"
first_bucket_bytes = 1000
inline_bytes = "64 KiB"
fuse_updates = false
cross_step = true
reduction_order = "tree"
)");
  EXPECT_EQ(config.model.kind, "mlp");
  EXPECT_EQ(config.model.widths, (List{256, 128}));
  EXPECT_FALSE(config.model.options.bias);
  EXPECT_EQ(config.optimizer.lr, 0.1);
  EXPECT_EQ(config.optimizer.momentum, 1.0);
  EXPECT_EQ(config.job.plan.buckets.bucket_bytes, 4 << 20);
  EXPECT_EQ(config.job.plan.buckets.first_bucket_bytes, 1000);
  EXPECT_EQ(config.job.plan.inline_bytes, 64 << 10);
  EXPECT_FALSE(config.job.plan.fuse_updates);
  EXPECT_TRUE(config.job.plan.cross_step);
  EXPECT_EQ(config.job.plan.reduction_order, "tree");
}

TEST(Config, TheCommandLineGoesOverTheFile) {
  const auto loaded = ParseConfig(
      "[train]\nsteps = 10\nseed = 5\n", "run.toml",
      {Set("train.seed", "1"), Set("train.seed", "2"), Set("model.kind", "mlp"),
       Set("model.widths", "32,16"), Set("optimizer.lr", "1e-3"),
       Set("checkpoint.dir", "a b/c=d")});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->config.job.seed, 2);
  EXPECT_EQ(loaded->config.model.widths, (List{32, 16}));
  EXPECT_EQ(loaded->config.optimizer.lr, 1e-3);
  EXPECT_EQ(loaded->config.job.checkpoint.dir, "a b/c=d");
  EXPECT_EQ(loaded->Where("train.seed"), "--set train.seed");
  EXPECT_EQ(loaded->Where("train.steps"), "run.toml:2");
  EXPECT_EQ(loaded->Where("train.device"), "run.toml");
}

TEST(Config, StepsAndEpochsOnTheCommandLineReplaceEachOther) {
  const std::string file = "[train]\nepochs = 3\n";
  const TrainerConfig config = Parsed(file, {Set("train.steps", "7")});
  EXPECT_EQ(config.job.steps, 7);
  EXPECT_EQ(config.job.epochs, 0);
  EXPECT_EQ(ErrorOf(file, {Set("train.steps", "7"), Set("train.epochs", "2")}),
            "--set train.epochs: train.steps and train.epochs are both set; "
            "remove one");
}

TEST(Config, RanksAreReplicasTimesStages) {
  const Setting four = {kRanksSetting, "4", "--ranks"};
  EXPECT_EQ(Parsed(kShort, {four}).job.plan.mesh.dp(), 4);
  const Settings two_stages = {Set("mesh.pp", "2"), Set("mesh.cuts", "3"),
                               four};
  EXPECT_EQ(Parsed(kShort, two_stages).job.plan.mesh.dp(), 2);
  const Setting three = {kRanksSetting, "3", "--ranks"};
  EXPECT_EQ(
      ErrorOf(kShort, {Set("mesh.pp", "2"), Set("mesh.cuts", "3"), three}),
      "--ranks: 3 ranks do not make whole replicas of mesh.pp = 2 "
      "stages; use 4");
  const Settings pieces = {Set("mesh.tp", "2"), Set("mesh.dp", "3")};
  EXPECT_EQ(Parsed(kShort, pieces).job.plan.mesh,
            pipeline::Mesh(/*dp=*/3, /*pp=*/1, /*tp=*/2));
  EXPECT_EQ(Parsed(kShort, {Set("mesh.tp", "2"), four}).job.plan.mesh.dp(), 2);
  EXPECT_EQ(ErrorOf(kShort, {Set("mesh.tp", "2"), three}),
            "--ranks: 3 ranks do not make whole replicas of mesh.pp = 1 "
            "stages on mesh.tp = 2; use 4");
  const Setting none = {kRanksSetting, "many", "--ranks"};
  EXPECT_EQ(ErrorOf(kShort, {none}),
            "--ranks: \"many\" is not a number of ranks; write --ranks=2, say");
}

TEST(Config, UnknownNames) {
  EXPECT_EQ(TrainError("global_batch_sise = 64"),
            "run.toml:3: unknown key train.global_batch_sise; did you mean "
            "train.global_batch_size?");
  EXPECT_EQ(TrainError("lr = 0.1"),
            "run.toml:3: unknown key train.lr; did you mean optimizer.lr?");
  EXPECT_EQ(TrainError("frobnicate = 1"),
            "run.toml:3: unknown key train.frobnicate; run \"trainer "
            "train --help\" for a list");
  EXPECT_EQ(ErrorOf(kShort, {Set("train.step", "1")}),
            "--set train.step: unknown key train.step; did you mean "
            "train.steps?");
  EXPECT_EQ(ErrorOf(kShort, {Set("steps", "1")}),
            "--set steps: unknown key steps; did you mean train.steps?");
  EXPECT_EQ(ErrorOf("[optimiser]\nlr = 0.1\n"),
            "run.toml:1: unknown section [optimiser]; did you mean "
            "[optimizer]?");
  EXPECT_EQ(ErrorOf("[scheduler]\n"),
            "run.toml:1: unknown section [scheduler]; there are [model] [data] "
            "[train] [loss] [optimizer] [mesh] [comm] [zero] [checkpoint] "
            "[log] [metrics] [trace]");
  EXPECT_EQ(ErrorOf("learning = 1\nsteps = 3\n"),
            "run.toml:1: key learning stands in no section; run \"trainer "
            "train --help\" for a list");
  EXPECT_EQ(ErrorOf("steps = 3\n"),
            "run.toml:1: key steps stands in no section; did you mean "
            "train.steps?");
}

TEST(Config, ABareBatchSizeIsAskedBack) {
  const std::string what =
      "\"batch_size\" can mean two things: train.micro_batch_size is what one "
      "forward of one stage takes, per rank; train.global_batch_size is what "
      "one optimizer step consumes over all replicas; write the one you mean";
  EXPECT_EQ(TrainError("batch_size = 64"), "run.toml:3: " + what);
  EXPECT_EQ(ErrorOf("batch_size = 64\n"), "run.toml:1: " + what);
  EXPECT_EQ(ErrorOf(kShort, {Set("data.batch_size", "64")}),
            "--set data.batch_size: " + what);
}

TEST(Config, WrongTypes) {
  EXPECT_EQ(TrainError("seed = \"one\""),
            "run.toml:3: train.seed = \"one\": must be a whole number, such as "
            "42");
  EXPECT_EQ(TrainError("seed = 1.5"),
            "run.toml:3: train.seed = 1.5: must be a whole number, without "
            "fraction or "
            "exponent, such as 42");
  EXPECT_EQ(ErrorOf("[train]\nsteps = 5.0\n"),
            "run.toml:2: train.steps = 5.0: must be a whole number, without "
            "fraction or exponent, such as 2000");
  EXPECT_EQ(ErrorOf(kShort, {Set("train.epochs", "1e3")}),
            "--set train.epochs: train.epochs = 1e3: must be a whole number, "
            "without fraction or exponent, such as 5");
  EXPECT_EQ(TrainError("stop_on_nan = 1"),
            "run.toml:3: train.stop_on_nan = 1: must be true or false, such as "
            "false");
  EXPECT_EQ(ErrorOf("[model]\nkind = 3\n"),
            "run.toml:2: model.kind = 3: must be a text, such as \"mlp\"");
  EXPECT_EQ(ErrorOf("[model]\nwidths = [1, \"a\"]\n"),
            "run.toml:2: model.widths = [1, \"a\"]: must be a list of whole "
            "numbers, such as [256, 128]");
  EXPECT_EQ(ErrorOf("[model]\nwidths = 7\n"),
            "run.toml:2: model.widths = 7: must be a list of whole numbers, "
            "such as [256, 128]");
  EXPECT_EQ(TrainError("seed = 2026-01-01"),
            "run.toml:3: train.seed takes a value of the type integer, such as "
            "42");
  EXPECT_EQ(ErrorOf("[comm]\nbucket_bytes = \"lots\"\n"),
            "run.toml:2: comm.bucket_bytes = \"lots\": must be a size in "
            "bytes, such as \"4MiB\"");
  EXPECT_EQ(ErrorOf("[comm]\ninline_bytes = \"some\"\n"),
            "run.toml:2: comm.inline_bytes = \"some\": must be \"auto\" or a "
            "size in bytes, such as \"64KiB\"");
  EXPECT_EQ(ErrorOf(kShort, {Set("optimizer.lr", "fast")}),
            "--set optimizer.lr: optimizer.lr = \"fast\": must be a number, "
            "such as 0.1");
}

TEST(Config, ValuesOutOfRange) {
  EXPECT_EQ(TrainError("global_batch_size = 0"),
            "run.toml:3: train.global_batch_size = 0: must be at least 1");
  EXPECT_EQ(ErrorOf(absl::StrCat(kShort, "[mesh]\ndp = 0\n")),
            "run.toml:4: mesh: dp and pp must be at least 1, got dp=0 pp=1");
  EXPECT_EQ(ErrorOf(absl::StrCat(kShort, "[mesh]\ndp = 5000000\n")),
            "run.toml:4: mesh: dp=5000000 pp=1 has more than 1048576 ranks; "
            "make it smaller");
  const Setting ranks = {kRanksSetting, "512", "--ranks"};
  EXPECT_EQ(ErrorOf(kShort, {ranks}),
            "--ranks: mesh dp=512 pp=1 has 512 ranks, and one process at most "
            "256; start several processes");
  EXPECT_EQ(ErrorOf("[train]\ncuda_graphs = \"yes\"\n"),
            "run.toml:2: train.cuda_graphs = \"yes\": must be one of \"auto\", "
            "\"on\", \"off\"");
  EXPECT_EQ(ErrorOf("[model]\nwidths = [128, 0]\n"),
            "run.toml:2: model.widths = [128, 0]: must be at least 1, such as "
            "[256, 128]");
}

TEST(Config, NotToml) {
  EXPECT_EQ(ErrorOf("[train]\nsteps = \n").substr(0, 23),
            "run.toml:2: not TOML: E");
  EXPECT_EQ(ErrorOf("[train]\nsteps = 1\nsteps = 2\n").substr(0, 21),
            "run.toml:3: not TOML:");
}

TEST(Config, HowLong) {
  EXPECT_EQ(ErrorOf("[train]\nsteps = 1\nepochs = 2\n"),
            "run.toml:3: train.steps and train.epochs are both set; remove "
            "one");
  EXPECT_EQ(ErrorOf(""),
            "run.toml: neither train.steps nor train.epochs is set; write one, "
            "such as train.epochs = 5");
}

TEST(Config, BatchesThatDoNotFit) {
  EXPECT_EQ(ErrorOf("[train]\nsteps = 1\nglobal_batch_size = 3\n[mesh]\ndp = "
                    "4\n"),
            "run.toml:3: train.global_batch_size = 3 is less than mesh.dp = 4, "
            "and each replica takes a share of a batch; use at least 4");
  EXPECT_EQ(
      ErrorOf(kShort, {Set("mesh.dp", "65")}),
      "--set mesh.dp: train.global_batch_size = 64 is less than mesh.dp = 65, "
      "and each replica takes a share of a batch; use at least 65");
  EXPECT_EQ(ErrorOf(kShort,
                    {Set("mesh.dp", "2"), Set("train.micro_batch_size", "33")}),
            "--set train.micro_batch_size: train.micro_batch_size = 33 is more "
            "than train.global_batch_size / mesh.dp = 64 / 2; use at most 32");
  EXPECT_EQ(ErrorOf(kShort, {Set("data.train_count", "63")}),
            "--set data.train_count: train.global_batch_size = 64 is more than "
            "the 63 samples of an epoch: no whole step is left; use at most "
            "that");
}

TEST(Config, StagesAndCuts) {
  EXPECT_EQ(ErrorOf(kShort, {Set("mesh.pp", "3"), Set("mesh.cuts", "5")}),
            "--set mesh.cuts: mesh.pp = 3 stages need 2 cuts, mesh.cuts has 1; "
            "give as many, from layers 1 to 11");
  EXPECT_EQ(
      ErrorOf(kShort, {Set("mesh.pp", "13")}),
      "--set mesh.pp: the model has 12 layers in Sequentials, too few for "
      "13 stages; take fewer");
  EXPECT_EQ(ErrorOf(kShort, {Set("mesh.cuts", "3")}),
            "--set mesh.cuts: mesh.pp = 1 stages need 0 cuts, mesh.cuts has 1; "
            "give as many, from layers 1 to 11");
  EXPECT_EQ(ErrorOf(kShort, {Set("mesh.pp", "3"), Set("mesh.cuts", "5,5")}),
            "--set mesh.cuts: cut 5 does not stand behind cut 5; put them in "
            "order");
  EXPECT_EQ(
      ErrorOf(kShort, {Set("mesh.pp", "2"), Set("mesh.cuts", "12")}),
      "--set mesh.cuts: cut 12 is not inside the model: cuts must be between 1 "
      "and 11 for a Sequential of 12");
  EXPECT_EQ(
      ErrorOf(kShort, {Set("mesh.pp", "2"), Set("mesh.cuts", "features.4")}),
      "--set mesh.cuts: cut \"features.4\": the model has no child "
      "\"features.4\"; it has 0 1 2 3 4 5 6 7 8 9 10 11");
  EXPECT_EQ(
      ErrorOf(absl::StrCat(kShort, "[mesh]\npp = 2\ncuts = [\"3.1\"]\n")),
      "run.toml:5: cut \"3.1\": module 3 is a troupe::nn::Conv2d, and only "
      "a Sequential can be cut; cut before it or behind it");
}

TEST(Config, CutsAreNumbersAndNames) {
  const std::string mesh = absl::StrCat(kShort, "[mesh]\npp = 3\n");
  using Cuts = std::vector<pipeline::Cut>;
  EXPECT_EQ(Parsed(mesh + "cuts = [3, 7]\n").job.plan.cuts, (Cuts{3, 7}));
  EXPECT_EQ(Parsed(mesh + "cuts = [3, \"7\"]\n").job.plan.cuts, (Cuts{3, "7"}));
  EXPECT_EQ(Parsed(mesh, {Set("mesh.cuts", "3,7")}).job.plan.cuts,
            (Cuts{3, 7}));
  EXPECT_EQ(ErrorOf(mesh + "cuts = [3, 7.5]\n"),
            "run.toml:5: mesh.cuts = [3, 7.5]: must be a list of whole numbers "
            "and texts, such as [3, \"7\"]");
  EXPECT_EQ(ErrorOf(mesh + "cuts = 3\n"),
            "run.toml:5: mesh.cuts = 3: must be a list of whole numbers and "
            "texts, such as [3, \"7\"]");
}

TEST(Config, ModelAndDataFit) {
  EXPECT_EQ(
      ErrorOf(kShort, {Set("data.kind", "synthetic")}),
      "--set data.kind: model.kind = \"lenet\" does not take the samples of "
      "data.kind = \"synthetic\", whose samples are f32[10] -> class of 10: it "
      "takes images (H, W, C); use model.kind = \"mlp\"");
  EXPECT_EQ(
      ErrorOf(kShort, {Set("data.kind", "mnist")}),
      "--set data.kind: data.kind = \"mnist\" needs data.path; set it to the "
      "folder of its files");
  EXPECT_EQ(ErrorOf(kShort, {Set("data.input_shape", "28,28")}),
            "--set data.input_shape: data.input_shape has 2 numbers; give "
            "one (length) or three (height, width, channels)");
}

TEST(Config, TextAndImages) {
  EXPECT_EQ(ErrorOf(kShort, {Set("data.kind", "text")}),
            "--set data.kind: model.kind = \"lenet\" does not take the samples "
            "of data.kind = \"text\", whose samples are i64[256] -> i64[256] "
            "of 256 classes: it takes images (H, W, C); use model.kind = "
            "\"gpt_nano\" or its like");
  const Setting images = Set("data.kind", "images");
  const Setting path = Set("data.path", "photos");
  const TrainerConfig config =
      Parsed(kShort, {images, path, Set("data.image_size", "64"),
                      Set("data.resize", "72"), Set("data.workers", "3")});
  EXPECT_EQ(config.data.images.size, 64);
  EXPECT_EQ(config.job.load_workers, 3);
  EXPECT_EQ(ErrorOf(kShort, {images, path, Set("data.resize", "72")}),
            "--set data.resize: data.resize = 72: must be at least "
            "data.image_size, 224, which is cut out of its middle");
}

TEST(Config, PaddingOfTextsIsWhatTheLossIgnores) {
  EXPECT_EQ(Parsed(kShort, {}).data.text.padding_target, -100);
  for (const std::int64_t ignored : {-1, 0, 5}) {
    const Setting setting = Set("loss.ignore_index", std::to_string(ignored));
    EXPECT_EQ(Parsed(kShort, {setting}).data.text.padding_target, ignored);
  }
}

TEST(Config, RanksFitOneProcess) {
  EXPECT_EQ(ErrorOf(kShort, {Set("mesh.dp", "32"), Set("mesh.pp", "16")}),
            "--set mesh.dp: mesh dp=32 pp=16 has 512 ranks, and one process at "
            "most 256; start several processes");
  const std::string file =
      "[train]\nsteps = 1\nglobal_batch_size = 256\n[mesh]\ndp = 256\n";
  EXPECT_EQ(Parsed(file).job.plan.mesh.dp(), 256);
  EXPECT_EQ(ErrorOf(file + "pp = 2\n"),
            "run.toml:5: mesh dp=256 pp=2 has 512 ranks, and one process at "
            "most 256; start several processes");
}

TEST(Config, SizesThatFitNoMachine) {
  const Setting big = Set("data.input_shape", "100000000,100000000,100000000");
  EXPECT_EQ(ErrorOf(kShort, {big}),
            "--set data.input_shape: data.input_shape = [100000000, 100000000, "
            "100000000]: must have at most 6 numbers, and a product below "
            "2^63, such as [28, 28, 1]");
  EXPECT_EQ(ErrorOf("[train]\nsteps = 1\n[model]\nkind = \"mlp\"\nwidths = "
                    "[8, 200000, 100000]\n"),
            "run.toml:5: a layer from 200000 to 100000 has 2e+10 weights, at "
            "most 1e+10; make model.widths or the samples smaller");
  EXPECT_EQ(ErrorOf("[train]\nsteps = 1\n[model]\nkind = \"linear\"\n[data]\n"
                    "kind = \"synthetic\"\nnum_classes = 100000000\n"
                    "input_shape = [1000]\n"),
            "run.toml:8: a layer from 1000 to 100000000 has 1e+11 weights, at "
            "most 1e+10; make model.widths or the samples smaller");
  EXPECT_EQ(ErrorOf(kShort, {Set("data.num_classes", "1000000000")}),
            "--set data.num_classes: data.num_classes = 1000000000: must be at "
            "most 1e+08, such as 0");
}

// An error of a lower layer names the key that set the value.
TEST(Config, ErrorsOfLowerLayersNameTheKey) {
  const auto with = [](const std::string& section, const std::string& line) {
    return ErrorOf(absl::StrCat(kShort, "[", section, "]\n", line, "\n"));
  };
  EXPECT_EQ(with("optimizer", "lr = -0.1"),
            "run.toml:4: optimizer.lr = -0.1: must be at least 0");
  EXPECT_EQ(with("optimizer", "lr = nan"),
            "run.toml:4: optimizer.lr = nan: must be finite");
  EXPECT_EQ(with("optimizer", "weight_decay = inf"),
            "run.toml:4: optimizer.weight_decay = inf: must be finite");
  EXPECT_EQ(with("optimizer", "momentum = -1"),
            "run.toml:4: optimizer.momentum = -1: must be at least 0");
  EXPECT_EQ(with("data", "train_count = -1"),
            "run.toml:4: data.train_count = -1: must be at least 0, which "
            "means all");
  EXPECT_EQ(TrainError("micro_batch_size = -2"),
            "run.toml:3: train.micro_batch_size = -2: must be at least 0");
  EXPECT_EQ(ErrorOf("[train]\nsteps = -1\n"),
            "run.toml:2: train.steps = -1: must be at least 0");
  EXPECT_EQ(with("mesh", "pp = 3\ncuts = [4]"),
            "run.toml:5: mesh.pp = 3 stages need 2 cuts, mesh.cuts has 1; "
            "give as many, from layers 1 to 11");
}

TEST(Config, CheckpointsNeedAFolder) {
  EXPECT_EQ(ErrorOf(kShort, {Set("checkpoint.every", "5")}),
            "--set checkpoint.every: checkpoint.every is set but "
            "checkpoint.dir is not; write checkpoint.dir = \"checkpoints\", "
            "say");
  const Setting resume = {"checkpoint.resume", "true", "--resume"};
  EXPECT_EQ(ErrorOf(kShort, {resume}),
            "--resume: checkpoint.resume is set but checkpoint.dir is not; "
            "write checkpoint.dir = \"checkpoints\", say");
  const std::string file =
      "[train]\nsteps = 1\n[checkpoint]\ndir = \"c\"\nreplace = true\n";
  EXPECT_TRUE(Parsed(file, {resume}).job.checkpoint.resume);
  EXPECT_EQ(ErrorOf(file + "resume = true\n"),
            "run.toml:5: checkpoint.replace and checkpoint.resume are both "
            "true; set one to false");
}

TEST(Config, CheckpointsByTimeAreInMinutes) {
  EXPECT_EQ(Parsed(kShort).job.checkpoint.every_time, absl::Minutes(30));
  EXPECT_EQ(Parsed(kShort, {Set("checkpoint.every_minutes", "0.5")})
                .job.checkpoint.every_time,
            absl::Seconds(30));
}

TEST(Config, TheCommandLineMaySayItAll) {
  base::PosixFileSystem files;
  const auto loaded = LoadConfig(files, "", {Set("train.steps", "7")});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->config.job.steps, 7);
  EXPECT_EQ(loaded->Where("data.kind"), "command line");
  EXPECT_EQ(LoadConfig(files, "", {}).status().message(),
            "command line: neither train.steps nor train.epochs is set; add "
            "one, such as --set train.epochs=5, or a file: "
            "--config=examples/glyphs/glyphs.toml");
}

TEST(Config, FilesThatCannotBeRead) {
  base::PosixFileSystem files;
  EXPECT_EQ(LoadConfig(files, "no/such.toml", {}).status().message(),
            "cannot read no/such.toml: No such file or directory; check the "
            "path");
}

}  // namespace
}  // namespace troupe::tools

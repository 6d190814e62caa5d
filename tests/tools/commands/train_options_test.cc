#include "tools/trainer/commands/train_options.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {
namespace {

using Words = std::vector<std::string>;

TrainOptions Parsed(const Words& words) {
  const auto options = ParseTrain(words);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.value_or(TrainOptions());
}

std::string ParseError(const Words& words) {
  return std::string(ParseTrain(words).status().message());
}

TEST(TrainOptions, Help) {
  EXPECT_EQ(Parsed({}).action, TrainAction::kTrain);
  EXPECT_EQ(Parsed({"--help"}).action, TrainAction::kHelp);
  EXPECT_EQ(Parsed({"-h"}).action, TrainAction::kHelp);
  EXPECT_EQ(Parsed({"--help=markdown"}).action, TrainAction::kHelpMarkdown);
}

TEST(TrainOptions, Everything) {
  const TrainOptions options =
      Parsed({"--ranks=4", "--config=run.toml", "--set", "train.steps=3",
              "--set=data.path=a=b", "--resume", "--trace", "t.json"});
  EXPECT_EQ(options.action, TrainAction::kTrain);
  EXPECT_EQ(options.source.file, "run.toml");
  std::vector<Words> settings;
  for (const Setting& s : options.source.settings) {
    settings.push_back({s.key, s.value, s.origin});
  }
  EXPECT_EQ(settings,
            (std::vector<Words>{
                {"train.steps", "3", "--set train.steps"},
                {"data.path", "a=b", "--set data.path"},
                {"checkpoint.resume", "true", "--resume"},
                {"trace.file", "t.json", "--trace"},
                {kRanksSetting, "4", "--ranks"},  // last, whatever the order
            }));
}

TEST(TrainOptions, PrintConfig) {
  EXPECT_EQ(Parsed({"--print-config", "--config", "a"}).action,
            TrainAction::kPrintConfig);
}

TEST(TrainOptions, Weights) {
  const TrainOptions options = Parsed({"--init-from=a.safetensors"});
  ASSERT_EQ(options.source.settings.size(), 1u);
  EXPECT_EQ(options.source.settings[0].key, "model.init_from");
  EXPECT_EQ(options.source.settings[0].value, "a.safetensors");
}

TEST(TrainOptions, Summary) {
  const TrainOptions options = Parsed({"--summary"});
  EXPECT_EQ(options.action, TrainAction::kSummary);
  ASSERT_EQ(options.source.settings.size(), 1u) << "it need not say how long";
  EXPECT_EQ(options.source.settings[0].key, "train.steps");
}

TEST(TrainOptions, RunFolder) {
  const TrainOptions options = Parsed({"--run-dir=runs/a"});
  ASSERT_EQ(options.source.settings.size(), 1u);
  EXPECT_EQ(options.source.settings[0].key, "log.run_dir");
  EXPECT_EQ(options.source.settings[0].value, "runs/a");
}

TEST(TrainOptions, TheSameAgain) {
  const ConfigSource source =
      Parsed({"--config", "my runs/a.toml", "--set", "train.steps=30",
              "--resume", "--set", "data.path=it's here", "--trace=t.json",
              "--set=checkpoint.replace=true", "--set=model.widths=[8, 4]",
              "--ranks=2"})
          .source;
  EXPECT_EQ(FormatCommand({"trainer", "", ""}, source.file, source.settings),
            "trainer train '--config=my runs/a.toml' --set train.steps=30 "
            "--set 'data.path=it'\\''s here' --set 'model.widths=[8, 4]' "
            "--ranks=2");
  EXPECT_EQ(
      FormatCommand({"mpirun -n 2 bin/trainer", " --certs=c", ""}, source.file,
                    source.settings, "train.epochs=8"),
      "mpirun -n 2 bin/trainer train --certs=c '--config=my runs/a.toml' --set "
      "'data.path=it'\\''s here' --set 'model.widths=[8, 4]' --ranks=2 --set "
      "train.epochs=8");
  EXPECT_EQ(FormatCommand({"trainer", "", ""}, "my a.toml", {}),
            "trainer train '--config=my a.toml'");
  EXPECT_EQ(
      FormatCommand({"trainer", "", ""}, /*config=*/"", {}, "train.steps=3"),
      "trainer train --set train.steps=3");
}

TEST(TrainOptions, EachKeyOnce) {
  const auto again = [](const std::vector<std::string>& arguments,
                        const std::string& change) {
    return FormatCommand({"trainer", "", ""}, "",
                         Parsed(arguments).source.settings, change);
  };
  EXPECT_EQ(again({"--set", "checkpoint.dir=", "--set", "train.steps=2"},
                  "checkpoint.dir=checkpoints"),
            "trainer train --set train.steps=2 --set "
            "checkpoint.dir=checkpoints");
  EXPECT_EQ(again({"--set=checkpoint.dir=a", "--set=checkpoint.dir="},
                  "checkpoint.dir=b"),
            "trainer train --set checkpoint.dir=b");
  EXPECT_EQ(again({"--set=train.early_stop_patience=2", "--set=train.epochs=9"},
                  "train.early_stop_patience=4"),
            "trainer train --set train.epochs=9 --set "
            "train.early_stop_patience=4");
  EXPECT_EQ(
      again({"--set=mesh.pp=2", "--set=train.epochs=9", "--set", "mesh.pp=3"},
            "train.steps=4"),
      "trainer train --set mesh.pp=3 --set train.steps=4");
  EXPECT_EQ(again({"--set=log.every=2", "--set=log.every=3"}, ""),
            "trainer train --set log.every=3");
}

TEST(TrainOptions, PathsHaveNoTilde) {
  for (const char* option : {"--config=~/a.toml", "--certs=~/certs"}) {
    EXPECT_EQ(ParseError({option}),
              absl::StrCat(option,
                           ": must have the home folder written out ($HOME on "
                           "a command line), since only a shell reads \"~\"; a "
                           "name that begins so is \"./~\""));
  }
  EXPECT_EQ(Parsed({"--config=./~a.toml"}).source.file, "./~a.toml");
}

TEST(TrainOptions, Errors) {
  EXPECT_EQ(ParseError({"run.toml"}),
            "unexpected argument run.toml; give the file as "
            "--config=run.toml");
  EXPECT_EQ(
      ParseError({"--confg=a"}),
      "unknown option --confg=a; run \"trainer train --help\" for a list");
  EXPECT_EQ(ParseError({"--config=a", "--set"}),
            "--set needs a value; write --set train.steps=100");
  EXPECT_EQ(ParseError({"--config=a", "--set", "train.steps"}),
            "--set train.steps: write --set section.key=value, such as --set "
            "train.steps=100");
}

TEST(TrainOptions, WhichProcessThisIs) {
  const TrainOptions options = Parsed({"--process=1", "--processes", "2",
                                       "--master=n1:29400", "--certs=certs"});
  EXPECT_EQ(options.placement.Show("--process"), "--process=1");
  EXPECT_EQ(options.placement.Show("--processes"), "--processes=2");
  EXPECT_EQ(options.placement.Show("--master"), "--master=n1:29400");
  EXPECT_EQ(options.placement.Show("--certs"), "--certs=certs");
  EXPECT_EQ(options.start_options,
            (Words{"--process=1", "--processes=2", "--master=n1:29400",
                   "--certs=certs"}));
  EXPECT_TRUE(options.source.settings.empty());
}

TEST(ConfigSource, NeedNotSayHowLongToTrain) {
  const auto source = ParseConfigSource("a.toml", {"data.seed=1"}, "2");
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(source->file, "a.toml");
  std::vector<std::string> keys;
  for (const Setting& s : source->settings) keys.push_back(s.key);
  EXPECT_EQ(keys, (Words{"data.seed", kRanksSetting, "train.steps"}));
}

}  // namespace
}  // namespace troupe::tools

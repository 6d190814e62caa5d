#include "tools/trainer/command_line.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::tools {
namespace {

using Words = std::vector<std::string>;

Command Parsed(const Words& words) {
  const auto command = ParseCommandLine(words);
  EXPECT_TRUE(command.ok()) << command.status();
  return command.value_or(Command());
}

std::string ErrorOf(const Words& words) {
  return std::string(ParseCommandLine(words).status().message());
}

TEST(CommandLine, Help) {
  EXPECT_EQ(Parsed({}).kind, CommandKind::kHelp);
  EXPECT_EQ(Parsed({"help"}).kind, CommandKind::kHelp);
  EXPECT_EQ(Parsed({"--help"}).kind, CommandKind::kHelp);
  EXPECT_EQ(Parsed({"help", "train"}).kind, CommandKind::kTrainHelp);
  EXPECT_EQ(Parsed({"train", "--help"}).kind, CommandKind::kTrainHelp);
  EXPECT_EQ(Parsed({"train", "--help=markdown"}).kind,
            CommandKind::kTrainHelpMarkdown);
}

TEST(CommandLine, Version) {
  EXPECT_EQ(Parsed({"--version"}).kind, CommandKind::kVersion);
}

TEST(CommandLine, TrainWithEverything) {
  const Command command = Parsed(
      {"train", "--ranks=4", "--config=run.toml", "--set", "train.steps=3",
       "--set=data.path=a=b", "--resume", "--trace", "t.json"});
  EXPECT_EQ(command.kind, CommandKind::kTrain);
  EXPECT_EQ(command.config, "run.toml");
  std::vector<Words> settings;
  for (const Setting& s : command.settings) {
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

TEST(CommandLine, PrintConfig) {
  EXPECT_EQ(Parsed({"train", "--print-config", "--config", "a"}).kind,
            CommandKind::kPrintConfig);
}

TEST(CommandLine, TheSameAgain) {
  const Command command =
      Parsed({"train", "--config", "my runs/a.toml", "--set", "train.steps=30",
              "--resume", "--set", "data.path=it's here", "--trace=t.json",
              "--set=checkpoint.replace=true", "--set=model.widths=[8, 4]",
              "--ranks=2"});
  EXPECT_EQ(FormatCommand("trainer", command.config, command.settings),
            "trainer train '--config=my runs/a.toml' --set train.steps=30 "
            "--set 'data.path=it'\\''s here' --set 'model.widths=[8, 4]' "
            "--ranks=2");
  EXPECT_EQ(
      FormatCommand("bazel-bin/tools/trainer", command.config, command.settings,
                    "train.epochs=8"),
      "bazel-bin/tools/trainer train '--config=my runs/a.toml' --set "
      "'data.path=it'\\''s here' --set 'model.widths=[8, 4]' --ranks=2 --set "
      "train.epochs=8");
  EXPECT_EQ(FormatCommand("./my trainer", "a.toml", {}),
            "'./my trainer' train --config=a.toml");
  EXPECT_EQ(FormatCommand("trainer", /*config=*/"", {}, "train.steps=3"),
            "trainer train --set train.steps=3");
}

TEST(CommandLine, Errors) {
  EXPECT_EQ(ErrorOf({"trian"}),
            "unknown command trian; \"trainer help\" shows what there is");
  EXPECT_EQ(ErrorOf({"help", "me"}),
            "no help on me; there is \"trainer help train\"");
  EXPECT_EQ(ErrorOf({"train", "run.toml"}),
            "unexpected argument run.toml; the file is given as "
            "--config=run.toml");
  EXPECT_EQ(ErrorOf({"train", "--confg=a"}),
            "unknown option --confg=a; \"trainer train --help\" lists all");
  EXPECT_EQ(ErrorOf({"train", "--config=a", "--set"}),
            "--set needs a value; write --set train.steps=100");
  EXPECT_EQ(ErrorOf({"train", "--config=a", "--set", "train.steps"}),
            "--set train.steps: write --set section.key=value, such as --set "
            "train.steps=100");
}

}  // namespace
}  // namespace troupe::tools

#include "tools/trainer/commands/command_line.h"

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
  EXPECT_EQ(Parsed({"help", "launch"}).kind, CommandKind::kLaunchHelp);
  EXPECT_EQ(Parsed({"launch", "--help"}).kind, CommandKind::kLaunchHelp);
  EXPECT_EQ(Parsed({"help", "certs"}).kind, CommandKind::kCertsHelp);
  EXPECT_EQ(Parsed({"certs", "-h"}).kind, CommandKind::kCertsHelp);
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

TEST(CommandLine, Weights) {
  const Command train = Parsed({"train", "--init-from=a.safetensors"});
  ASSERT_EQ(train.settings.size(), 1u);
  EXPECT_EQ(train.settings[0].key, "model.init_from");
  EXPECT_EQ(train.settings[0].value, "a.safetensors");
  const Command summary = Parsed({"train", "--summary"});
  EXPECT_EQ(summary.kind, CommandKind::kSummary);
  ASSERT_EQ(summary.settings.size(), 1u) << "it need not say how long";
  EXPECT_EQ(summary.settings[0].key, "train.steps");
  const Command command = Parsed({"export", "--checkpoint=c", "--out", "o",
                                  "--dtype=bf16", "--format=transformers"});
  EXPECT_EQ(command.kind, CommandKind::kExport);
  EXPECT_EQ(command.exporting.checkpoint, "c");
  EXPECT_EQ(command.exporting.out, "o");
  EXPECT_EQ(command.exporting.dtype, "bf16");
  EXPECT_EQ(command.exporting.format, kTransformersFormat);
  EXPECT_EQ(Parsed({"help", "export"}).kind, CommandKind::kExportHelp);
  EXPECT_EQ(ErrorOf({"export", "--out=o"}),
            "no checkpoint is given; write --checkpoint=checkpoints/glyphs");
  EXPECT_EQ(ErrorOf({"export", "--checkpoint=c", "--out=o", "--dtype=i64"}),
            "--dtype=i64: must be \"f32\", \"f64\", \"bf16\" or \"f16\"");
  EXPECT_EQ(ErrorOf({"export", "--checkpoint=c", "--out=o", "--format=onnx"}),
            "--format=onnx: must be \"pytorch\" or \"transformers\"");
}

TEST(CommandLine, Report) {
  const Command train = Parsed({"train", "--run-dir=runs/a"});
  ASSERT_EQ(train.settings.size(), 1u);
  EXPECT_EQ(train.settings[0].key, "log.run_dir");
  EXPECT_EQ(train.settings[0].value, "runs/a");
  const Command command = Parsed({"report", "runs/a", "--output=a.html"});
  EXPECT_EQ(command.kind, CommandKind::kReport);
  EXPECT_EQ(command.report.run_dir, "runs/a");
  EXPECT_EQ(command.report.output, "a.html");
  EXPECT_EQ(Parsed({"report", "--help"}).kind, CommandKind::kReportHelp);
  EXPECT_EQ(Parsed({"help", "report"}).kind, CommandKind::kReportHelp);
  EXPECT_EQ(ErrorOf({"report", "a", "b"}),
            "report takes one run folder, not 2; write trainer report "
            "runs/mnist, say");
}

TEST(CommandLine, TheSameAgain) {
  const Command command =
      Parsed({"train", "--config", "my runs/a.toml", "--set", "train.steps=30",
              "--resume", "--set", "data.path=it's here", "--trace=t.json",
              "--set=checkpoint.replace=true", "--set=model.widths=[8, 4]",
              "--ranks=2"});
  EXPECT_EQ(
      FormatCommand({"trainer", "", ""}, command.config, command.settings),
      "trainer train '--config=my runs/a.toml' --set train.steps=30 "
      "--set 'data.path=it'\\''s here' --set 'model.widths=[8, 4]' "
      "--ranks=2");
  EXPECT_EQ(
      FormatCommand({"mpirun -n 2 bin/trainer", " --certs=c", ""},
                    command.config, command.settings, "train.epochs=8"),
      "mpirun -n 2 bin/trainer train --certs=c '--config=my runs/a.toml' --set "
      "'data.path=it'\\''s here' --set 'model.widths=[8, 4]' --ranks=2 --set "
      "train.epochs=8");
  EXPECT_EQ(FormatCommand({"trainer", "", ""}, "my a.toml", {}),
            "trainer train '--config=my a.toml'");
  EXPECT_EQ(
      FormatCommand({"trainer", "", ""}, /*config=*/"", {}, "train.steps=3"),
      "trainer train --set train.steps=3");
}

TEST(CommandLine, AnEvaluationTakesACheckpointAndTheRunsOptions) {
  const auto command =
      ParseCommandLine({"evaluate", "--checkpoint=saved/best", "--config",
                        "a.toml", "--set", "data.seed=1", "--ranks=2"});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(command->kind, CommandKind::kEvaluate);
  EXPECT_EQ(command->checkpoint, "saved/best");
  EXPECT_EQ(command->config, "a.toml");
  ASSERT_EQ(command->settings.size(), 3u);
  EXPECT_EQ(command->settings[0].key, "data.seed");
  EXPECT_EQ(command->settings[2].key, "train.steps") << "no length is needed";
  EXPECT_EQ(ParseCommandLine({"evaluate", "--help"})->kind,
            CommandKind::kEvaluateHelp);
  EXPECT_EQ(ParseCommandLine({"help", "evaluate"})->kind,
            CommandKind::kEvaluateHelp);
}

TEST(CommandLine, Errors) {
  EXPECT_EQ(ErrorOf({"trian"}),
            "unknown command trian; \"trainer help\" shows what there is");
  EXPECT_EQ(
      ErrorOf({"help", "me"}),
      "no help on me; there is \"trainer help train\", and the same of "
      "evaluate, generate, predict, plan, profile, report, launch, certs, "
      "doctor and export");
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

TEST(CommandLine, OtherCommands) {
  const Command launch =
      Parsed({"launch", "--nproc-per-node=2", "--", "train", "--ranks=4"});
  EXPECT_EQ(launch.kind, CommandKind::kLaunch);
  EXPECT_EQ(launch.launch.processes_per_node, 2);
  EXPECT_EQ(launch.launch.command,
            (std::vector<std::string>{"train", "--ranks=4"}));
  const Command certs = Parsed({"certs", "--dir=a"});
  EXPECT_EQ(certs.kind, CommandKind::kCerts);
  EXPECT_EQ(certs.certs.dir, "a");
}

TEST(CommandLine, WhichProcessThisIs) {
  const Command command = Parsed({"train", "--process=1", "--processes", "2",
                                  "--master=n1:29400", "--certs=certs"});
  EXPECT_EQ(command.placement.Show("--process"), "--process=1");
  EXPECT_EQ(command.placement.Show("--processes"), "--processes=2");
  EXPECT_EQ(command.placement.Show("--master"), "--master=n1:29400");
  EXPECT_EQ(command.placement.Show("--certs"), "--certs=certs");
  EXPECT_EQ(command.start_options,
            (Words{"--process=1", "--processes=2", "--master=n1:29400",
                   "--certs=certs"}));
  EXPECT_TRUE(command.settings.empty());
}

}  // namespace
}  // namespace troupe::tools

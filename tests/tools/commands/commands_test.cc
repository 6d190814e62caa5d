#include "tools/trainer/commands/commands.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "tools/report/report_command.h"
#include "tools/trainer/commands/certs_command.h"
#include "tools/trainer/commands/command.h"
#include "tools/trainer/commands/evaluate_command.h"
#include "tools/trainer/commands/export_command.h"
#include "tools/trainer/commands/help.h"
#include "tools/trainer/config/config_keys.h"
#include "tools/trainer/doctor/doctor_command.h"
#include "tools/trainer/launch/launch_command.h"
#include "tools/trainer/terminal/version.h"

namespace troupe::tools {
namespace {

using Words = std::vector<std::string>;

struct Outcome {
  int exit_code = 0;
  std::string out, error;
};

Outcome Ran(const Words& words) {
  Outcome outcome;
  base::PosixFileSystem files;
  const char* const environment[] = {nullptr};
  CommandContext context;
  context.environment = environment;
  context.files = &files;
  context.write = [&](absl::string_view text) {
    absl::StrAppend(&outcome.out, text);
    return true;
  };
  context.write_error = [&](absl::string_view text) {
    absl::StrAppend(&outcome.error, text);
  };
  outcome.exit_code = RunCommand(words, context);
  return outcome;
}

// Returns what a command without an error prints.
std::string OutOf(const Words& words) {
  const Outcome outcome = Ran(words);
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.error;
  EXPECT_EQ(outcome.error, "");
  return outcome.out;
}

// Returns what a command with wrong arguments prints.
std::string ErrorOf(const Words& words) {
  const Outcome outcome = Ran(words);
  EXPECT_EQ(outcome.exit_code, kExitUsage);
  EXPECT_EQ(outcome.out, "");
  return outcome.error;
}

TEST(Commands, Help) {
  const std::string help = GeneralHelp(Commands());
  EXPECT_EQ(OutOf({}), help);
  EXPECT_EQ(OutOf({"help"}), help);
  EXPECT_EQ(OutOf({"--help"}), help);
  EXPECT_EQ(OutOf({"-h"}), help);
  EXPECT_EQ(OutOf({"help", "train"}), TrainHelp());
  EXPECT_EQ(OutOf({"train", "--help=markdown"}), TrainHelpMarkdown());
}

// The output of a command is its result, and losing it is an error.
TEST(Commands, LostOutputIsAnError) {
  const auto ran = [](const Words& words, int writes_left, bool has_output) {
    Outcome outcome;
    base::PosixFileSystem files;
    const char* const environment[] = {nullptr};
    CommandContext context;
    context.environment = environment;
    context.files = &files;
    context.has_output = has_output;
    context.write = [&](absl::string_view text) {
      if (writes_left-- <= 0) return false;
      absl::StrAppend(&outcome.out, text);
      return true;
    };
    context.write_error = [&](absl::string_view text) {
      absl::StrAppend(&outcome.error, text);
    };
    outcome.exit_code = RunCommand(words, context);
    return outcome;
  };
  const std::string small = "--set=train.steps=1";
  const std::vector<Words> commands = {
      {},
      {"help"},
      {"--version"},
      {"help", "plan"},
      {"train", "--help"},
      {"train", small, "--print-config"},
      {"train", "--summary"},
      {"plan", "--set=mesh.dp=2"},
      {"train", small, "--set=model.kind=linear", "--set=data.train_count=64",
       "--set=data.test_count=16", "--set=train.kernel_cache=off"}};
  for (const Words& words : commands) {
    const std::string what = words.empty() ? "" : words.back();
    const Outcome full = ran(words, /*writes_left=*/0, /*has_output=*/true);
    EXPECT_EQ(full.exit_code, kExitFailed) << what;
    EXPECT_EQ(
        full.error,
        "trainer: standard output, or its end, could not be written: it is "
        "closed, nobody reads it, or its disk is full; write it "
        "elsewhere\n")
        << what;
    EXPECT_EQ(ran(words, 1000, true).exit_code, kExitOk) << what;
    const bool is_run = words.size() > 4;
    EXPECT_EQ(ran(words, 1000, false).exit_code, is_run ? kExitOk : kExitFailed)
        << what;
  }
  // A command that fails by itself says so.
  EXPECT_EQ(ran({"help", "dance"}, 0, true).exit_code, kExitUsage);
}

TEST(Commands, EachHasAHelp) {
  ASSERT_EQ(Commands().size(), 11u);
  for (const Command& command : Commands()) {
    const std::string help = command.help();
    EXPECT_EQ(help.substr(0, 9 + std::string(command.name).size()),
              absl::StrCat("trainer ", command.name, " "));
    EXPECT_EQ(OutOf({"help", command.name}), help);
    EXPECT_EQ(OutOf({command.name, "--help"}), help);
    EXPECT_EQ(OutOf({command.name, "-h"}), help);
  }
}

TEST(Commands, GeneralHelpListsAll) {
  const std::string help = GeneralHelp(Commands());
  const std::size_t end = help.find("\nTo begin, ");
  EXPECT_EQ(help.substr(0, end),
            R"(trainer trains neural networks on several ranks at once.

  trainer train [--config=FILE] [options] train, as file and options say
  trainer evaluate --checkpoint=DIR [--config=FILE] [options]
                                          loss and accuracy of a checkpoint
  trainer generate --checkpoint=DIR [--config=FILE] [--prompt=TEXT]
                                          text of a language model
  trainer predict --checkpoint=DIR [--config=FILE] IMAGE...
                                          the classes of images
  trainer plan [--config=FILE] [options]  stages, schedule, step and memory of a
                                          run that has not begun
  trainer profile [--config=FILE] [options]
                                          where the time of a step goes
  trainer report RUN-DIR [--output=FILE]  a page of a run: executed and planned
                                          steps, waiting, memory, curves
  trainer launch --nproc-per-node=K -- train ...
                                          the same by K processes, on one node
                                          or on several
  trainer certs --dir=DIR [--hosts=A,B]   certificates for several nodes
  trainer doctor [--hosts=A,B]            whether a job can run here
  trainer export --checkpoint=DIR --out=FILE
                                          weights for other programs
  trainer help train                      every option and configuration key
  trainer help evaluate|generate|predict|plan|profile|report|launch|certs|
      doctor|export                       every option of these
  trainer help                            this text
  trainer --version                       the version of Troupe
)");
}

TEST(Commands, Version) {
  EXPECT_EQ(OutOf({"--version"}), absl::StrCat("trainer ", Version(), "\n"));
}

TEST(Commands, Errors) {
  EXPECT_EQ(
      ErrorOf({"trian"}),
      "trainer: unknown command trian; run \"trainer help\" for a list\n");
  EXPECT_EQ(
      ErrorOf({"help", "me"}),
      "trainer: there is no command me; run \"trainer help train\", or with "
      "evaluate, generate, predict, plan, profile, report, launch, certs, "
      "doctor or export\n");
  EXPECT_EQ(ErrorOf({"train", "run.toml"}),
            "trainer: unexpected argument run.toml; give the file as "
            "--config=run.toml\n");
  EXPECT_EQ(ErrorOf({"report", "a", "b"}),
            "trainer: report takes one run folder, not 2; write trainer report "
            "runs/mnist, say\n");
}

TEST(Help, NamesEveryKeyInLinesThatFitATerminal) {
  const std::string help = TrainHelp();
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_TRUE(absl::StrContains(help, std::string(key.key()) + " = "))
        << key.name;
  }
  for (absl::string_view line :
       absl::StrSplit(help + GeneralHelp(Commands()) + LaunchHelp() +
                          CertsHelp() + DoctorHelp(),
                      '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(PrintConfig, ReadsBackAsTheSameConfiguration) {
  const auto loaded = ParseConfig(
      "[train]\nsteps = 10\n[data]\npath = \"a \\\"b\\\"\"\n", "run.toml",
      {{"model.widths", "3,4", "--set model.widths"},
       {"optimizer.lr", "0.1", "--set optimizer.lr"}});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const std::string printed = PrintConfig(*loaded);
  const auto again = ParseConfig(printed, "again.toml", {});
  ASSERT_TRUE(again.ok()) << again.status();
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_EQ(FormatValue(key, again->config), FormatValue(key, loaded->config))
        << key.name;
  }
  EXPECT_TRUE(absl::StrContains(
      printed, "lr = 0.1                               # --set optimizer.lr\n"))
      << printed;
  EXPECT_TRUE(absl::StrContains(
      printed, "steps = 10                             # run.toml:2\n"))
      << printed;
  EXPECT_TRUE(absl::StrContains(printed, "\nmomentum = 0\n")) << printed;
}

TEST(EvaluateCommand, TakesACheckpointAndTheRunsOptions) {
  const auto options =
      ParseEvaluate({"--checkpoint=saved/best", "--config", "a.toml", "--set",
                     "data.seed=1", "--ranks=2"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->help);
  EXPECT_EQ(options->checkpoint, "saved/best");
  EXPECT_EQ(options->source.file, "a.toml");
  ASSERT_EQ(options->source.settings.size(), 3u);
  EXPECT_EQ(options->source.settings[0].key, "data.seed");
  EXPECT_EQ(options->source.settings[2].key, "train.steps")
      << "no length is needed";
  EXPECT_TRUE(ParseEvaluate({"--help"})->help);
}

TEST(ExportCommand, Options) {
  const auto options = ParseExport({"--checkpoint=c", "--out", "o",
                                    "--dtype=bf16", "--format=transformers"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->checkpoint, "c");
  EXPECT_EQ(options->out, "o");
  EXPECT_EQ(options->dtype, "bf16");
  EXPECT_EQ(options->format, kTransformersFormat);
}

TEST(ExportCommand, Errors) {
  EXPECT_EQ(ErrorOf({"export", "--out=o"}),
            "trainer: no checkpoint is given; write "
            "--checkpoint=checkpoints/glyphs\n");
  EXPECT_EQ(
      ErrorOf({"export", "--checkpoint=c", "--out=o", "--dtype=i64"}),
      "trainer: --dtype=i64: must be \"f32\", \"f64\", \"bf16\" or \"f16\"\n");
  EXPECT_EQ(
      ErrorOf({"export", "--checkpoint=c", "--out=o", "--format=onnx"}),
      "trainer: --format=onnx: must be one of safetensors, pytorch, pt, hf, "
      "transformers\n");
}

TEST(Commands, OptionsOfOthers) {
  const auto report = ParseReport({"runs/a", "--output=a.html"});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->run_dir, "runs/a");
  EXPECT_EQ(report->output, "a.html");
  const auto launch =
      ParseLaunch({"--nproc-per-node=2", "--", "train", "--ranks=4"});
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->processes_per_node, 2);
  EXPECT_EQ(launch->command, (Words{"train", "--ranks=4"}));
  const auto certs = ParseCerts({"--dir=a"});
  ASSERT_TRUE(certs.ok()) << certs.status();
  EXPECT_EQ(certs->dir, "a");
}

TEST(Commands, OptionsOfTheRunAreCheckedBeforeHelpIsPrinted) {
  for (const char* command : {"generate", "predict", "plan", "profile"}) {
    EXPECT_EQ(ErrorOf({command, "--set=seed", "--help"}),
              "trainer: --set seed: write --set section.key=value, such as "
              "--set train.steps=100\n");
  }
}

TEST(Commands, AWrongCommandIsNotLaunched) {
  EXPECT_EQ(ErrorOf({"launch", "--nproc-per-node=2", "--", "train", "-h"}),
            "trainer: only runs are launched; give --help, --print-config and "
            "the like to \"trainer train\" itself\n");
  EXPECT_EQ(ErrorOf({"launch", "--nproc-per-node=2", "--", "train",
                     "--config=/dev/stdin"}),
            "trainer: --config=/dev/stdin: the processes have an empty input; "
            "write it into a file\n");
}

}  // namespace
}  // namespace troupe::tools

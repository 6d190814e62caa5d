// The wiring: arguments, real files, terminal and signals.

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/file_system.h"
#include "tools/trainer/command_line.h"
#include "tools/trainer/config.h"
#include "tools/trainer/display.h"
#include "tools/trainer/exit_codes.h"
#include "tools/trainer/help.h"
#include "tools/trainer/last_words.h"
#include "tools/trainer/train_command.h"
#include "tools/trainer/version.h"

namespace troupe::tools {
namespace {

constexpr int kColumns = 80;  // where there is no terminal to ask

void WriteOut(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// One line, whatever the message has in it.
int Fail(const absl::Status& status, ExitCode exit_code) {
  const std::string line =
      absl::StrReplaceAll(status.message(), {{"\n", "; "}});
  std::fprintf(stderr, "trainer: %s\n", line.c_str());
  return exit_code;
}

int TerminalColumns() {
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? size.ws_col : kColumns;
}

Display::Options DisplayOptions(const LogConfig& config) {
  Display::Options options;
  options.bar = config.progress == "on" ||
                (config.progress == "auto" && isatty(STDOUT_FILENO));
  options.log_every = config.every;
  options.columns = TerminalColumns;
  return options;
}

int RunTrain(const LoadedConfig& loaded, const std::string& program,
             base::FileSystem& files) {
  Display display(DisplayOptions(loaded.config.log), WriteOut);
  const TrainOutcome outcome = Train(loaded, program, files, display);
  if (!outcome.status.ok()) {
    return Fail(outcome.status,
                outcome.config_error ? kExitUsage : kExitFailed);
  }
  if (outcome.stopped_by == 0) return kExitOk;
  if (outcome.stopped_by != SIGPIPE) return kExitStopped;
  // What was printed last, nobody has read.
  return Fail(absl::CancelledError(
                  "stopped before the end: nobody reads the output any more"),
              kExitStopped);
}

int Main(const std::string& program,
         const std::vector<std::string>& arguments) {
  // A limit on file sizes, and a pipe without a reader, are errors of the write
  // then, not the end.
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  const absl::StatusOr<Command> command = ParseCommandLine(arguments);
  if (!command.ok()) return Fail(command.status(), kExitUsage);
  switch (command->kind) {
    case CommandKind::kHelp:
      WriteOut(GeneralHelp());
      return kExitOk;
    case CommandKind::kVersion:
      WriteOut(absl::StrCat("trainer ", Version(), "\n"));
      return kExitOk;
    case CommandKind::kTrainHelp:
      WriteOut(TrainHelp());
      return kExitOk;
    case CommandKind::kTrainHelpMarkdown:
      WriteOut(TrainHelpMarkdown());
      return kExitOk;
    case CommandKind::kPrintConfig:
    case CommandKind::kTrain:
      break;
  }
  base::PosixFileSystem files;
  const absl::StatusOr<LoadedConfig> loaded =
      LoadConfig(files, command->config, command->settings);
  if (!loaded.ok()) return Fail(loaded.status(), kExitUsage);
  if (command->kind == CommandKind::kPrintConfig) {
    WriteOut(PrintConfig(*loaded));
    return kExitOk;
  }
  return RunTrain(*loaded, program, files);
}

}  // namespace
}  // namespace troupe::tools

int main(int argc, char** argv) {
  troupe::tools::SayLastWords();
  const std::string program = argc > 0 ? argv[0] : "trainer";
  const int code = troupe::tools::Main(
      program, std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  if (code == troupe::tools::kExitFailed) {
    std::fflush(nullptr);
    std::_Exit(code);  // threads of a failed job may still be there
  }
  return code;
}

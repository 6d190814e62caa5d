#include "tools/trainer/trainer_main.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/files/file_system.h"
#include "tools/trainer/commands/command.h"
#include "tools/trainer/commands/commands.h"
#include "tools/trainer/terminal/exit_codes.h"
#include "tools/trainer/terminal/last_words.h"
#include "tools/trainer/terminal/output_writer.h"
#include "tools/trainer/terminal/standard_streams.h"

namespace troupe::tools {
namespace {

int TerminalColumns() {
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

int TrainerMain(int argc, char** argv) {
  const StandardStreams were_open = OpenClosedStreams();
  SayLastWords();
  // Detecting deadlocks makes a lock ten times as slow; tests do it.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Exceeding a limit on file sizes, or writing to a pipe without a reader, is
  // then an error of the write and does not end the process.
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  base::PosixFileSystem files;
  CommandContext context;
  if (argc > 0) context.program = argv[0];
  context.environment = environ;
  context.files = &files;
  // Threads of a failed run may still write when this function returns.
  const auto out = std::make_shared<OutputWriter>(STDOUT_FILENO);
  const auto error = std::make_shared<OutputWriter>(STDERR_FILENO);
  context.write = [out](absl::string_view text) { return out->Write(text); };
  context.has_output = were_open.output;
  context.write_error = [error](absl::string_view text) { error->Write(text); };
  context.stop_waiting = [out, error] {
    out->StopWaiting();
    error->StopWaiting();
  };
  context.columns = TerminalColumns;
  context.on_terminal = isatty(STDOUT_FILENO);
  const char* const term = std::getenv("TERM");
  context.rewrites_lines =
      context.on_terminal && CanRewriteLines(term == nullptr ? "" : term);
  const int code = RunCommand({argv + std::min(argc, 1), argv + argc}, context);
  if (code == kExitFailed) {
    std::fflush(nullptr);
    std::_Exit(code);  // threads of a failed job may still run
  }
  return code;
}

}  // namespace troupe::tools

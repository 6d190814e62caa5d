// A subcommand of `trainer` as a row of the table in commands.cc.
//
//   Command ExportCommand() {
//     return {"export", "--checkpoint=DIR --out=FILE",
//             "weights for other programs", ExportHelp, RunExport};
//   }

#ifndef TOOLS_TRAINER_COMMANDS_COMMAND_H_
#define TOOLS_TRAINER_COMMANDS_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "tools/trainer/terminal/exit_codes.h"

namespace troupe::tools {

// Process-wide resources of a command. Tests replace them.
struct CommandContext {
  std::string program = "trainer";  // path that this program was called by
  const char* const* environment = nullptr;  // the process's environ
  base::FileSystem* files = nullptr;
  // Writes to the standard output and flushes it. Returns false once a write
  // has failed. RunCommand() then fails, whatever the command returns.
  std::function<bool(absl::string_view)> write;
  // False: the standard output was closed at the start. Only the progress of a
  // run may then be written: what others print would be lost.
  bool has_output = true;
  // Writes to the standard error.
  std::function<void(absl::string_view)> write_error;
  // Called when a stop was requested: makes both functions above drop output
  // that has no reader instead of waiting for one.
  std::function<void()> stop_waiting = [] {};
  // Returns the width of the terminal in characters.
  std::function<int()> columns = [] { return 80; };
  bool on_terminal = false;  // whether the standard output is a terminal
  // Whether it is a terminal that can rewrite a line (standard_streams.h).
  bool rewrites_lines = false;
};

struct Command {
  const char* name;
  const char* usage;    // arguments after the name, in `trainer help`
  const char* summary;  // purpose in a few words, in `trainer help`
  std::string (*help)();
  // Runs the command with the arguments that follow its name, and returns the
  // exit code. Prints its own errors.
  int (*run)(const std::vector<std::string>& arguments,
             const CommandContext& context);
};

// Writes `text` to the standard output and returns kExitOk.
inline int Print(const CommandContext& context, absl::string_view text) {
  context.write(text);
  return kExitOk;
}

// Returns a function that writes a line to the standard error, for commands
// whose standard output is their result.
inline std::function<void(const std::string&)> NotesOf(
    const CommandContext& context) {
  return [write = context.write_error](const std::string& line) {
    write(absl::StrCat(line, "\n"));
  };
}

// Writes the message of `status` as one line to the standard error and returns
// `exit_code`.
inline int Fail(const CommandContext& context, const absl::Status& status,
                ExitCode exit_code) {
  const std::string line =
      absl::StrReplaceAll(status.message(), {{"\n", "; "}});
  context.write_error(absl::StrCat("trainer: ", line, "\n"));
  return exit_code;
}

// The same; the exit code is kExitUsage for kInvalidArgument and kExitFailed
// for all other errors.
inline int Fail(const CommandContext& context, const absl::Status& status) {
  return Fail(context, status,
              absl::IsInvalidArgument(status) ? kExitUsage : kExitFailed);
}

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_COMMAND_H_

#include "tools/trainer/commands/commands.h"

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/trainer/commands/certs_command.h"
#include "tools/trainer/commands/evaluate_command.h"
#include "tools/trainer/commands/export_command.h"
#include "tools/trainer/commands/generate_command.h"
#include "tools/trainer/commands/help.h"
#include "tools/trainer/commands/other_commands.h"
#include "tools/trainer/commands/plan_command.h"
#include "tools/trainer/commands/predict_command.h"
#include "tools/trainer/commands/train_command.h"
#include "tools/trainer/terminal/version.h"

namespace troupe::tools {
namespace {

constexpr absl::string_view kStandardOutput = "standard output";

const Command* Find(const std::string& name) {
  for (const Command& command : Commands()) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

// Returns the error on `trainer help TOPIC` for an unknown topic.
absl::Status NoHelpOn(const std::string& topic) {
  const absl::Span<const Command> commands = Commands();
  std::string names;
  for (std::size_t i = 1; i < commands.size(); ++i) {
    const bool last = i + 1 == commands.size();
    absl::StrAppend(&names,
                    i == 1 ? ""
                    : last ? " or "
                           : ", ",
                    commands[i].name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no command ", topic, "; run \"trainer help ",
                   commands[0].name, "\", or with ", names));
}

}  // namespace

absl::Span<const Command> Commands() {
  static const Command commands[] = {
      TrainCommand(), EvaluateCommand(), GenerateCommand(), PredictCommand(),
      PlanCommand(),  ProfileCommand(),  ReportCommand(),   LaunchCommand(),
      CertsCommand(), DoctorCommand(),   ExportCommand(),
  };
  return commands;
}

namespace {

int RunNamed(const std::vector<std::string>& arguments,
             const CommandContext& context) {
  const std::string first = arguments.empty() ? "help" : arguments[0];
  if (const Command* command = Find(first)) {
    return command->run({arguments.begin() + 1, arguments.end()}, context);
  }
  if (first == "--version") {
    return Print(context, absl::StrCat("trainer ", Version(), "\n"));
  }
  const bool asks_help = first == "help";
  if (first == "--help" || first == "-h" ||
      (asks_help && arguments.size() < 2)) {
    return Print(context, GeneralHelp(Commands()));
  }
  if (!asks_help) {
    return Fail(context, absl::InvalidArgumentError(absl::StrCat(
                             "unknown command ", first,
                             "; run \"trainer help\" for a list")));
  }
  const Command* topic = Find(arguments[1]);
  if (topic == nullptr) return Fail(context, NoHelpOn(arguments[1]));
  return Print(context, topic->help());
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments,
               const CommandContext& context) {
  // Threads of a failed run may write after this function has returned.
  const auto lost = std::make_shared<std::atomic<bool>>(false);
  CommandContext watched = context;
  watched.write = [write = context.write, has_output = context.has_output,
                   lost](absl::string_view text) {
    const bool written = has_output && write(text);
    if (!written) *lost = true;
    return written;
  };
  const int code = RunNamed(arguments, watched);
  if (code != kExitOk || !*lost) return code;
  return Fail(context,
              absl::DataLossError(absl::StrCat(
                  kStandardOutput,
                  ", or its end, could not be written: it is closed, nobody "
                  "reads it, or its disk is full; write it elsewhere")));
}

}  // namespace troupe::tools

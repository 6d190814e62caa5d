#include "tools/trainer/commands/other_commands.h"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/profile/profile_command.h"
#include "tools/report/report_command.h"
#include "tools/trainer/commands/train_options.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/doctor/doctor_command.h"
#include "tools/trainer/doctor/doctor_findings.h"
#include "tools/trainer/launch/launch_command.h"
#include "tools/trainer/terminal/version.h"

namespace troupe::tools {
namespace {

int RunProfile(const std::vector<std::string>& arguments,
               const CommandContext& context) {
  const absl::StatusOr<ProfileRequest> request = ParseProfile(arguments);
  if (!request.ok()) return Fail(context, request.status(), kExitUsage);
  const absl::StatusOr<ConfigSource> source =
      ParseConfigSource(request->config, request->sets, request->ranks);
  if (!source.ok()) return Fail(context, source.status(), kExitUsage);
  if (request->help) return Print(context, ProfileHelp());
  return RunOnConfig(context, *source, [&](const LoadedConfig& loaded) {
    return ProfileSteps(loaded, *request, *context.files, context.write,
                        NotesOf(context));
  });
}

int RunReport(const std::vector<std::string>& arguments,
              const CommandContext& context) {
  const absl::StatusOr<ReportRequest> request = ParseReport(arguments);
  if (!request.ok()) return Fail(context, request.status(), kExitUsage);
  if (request->help) return Print(context, ReportHelp());
  const absl::StatusOr<std::string> text =
      WriteReport(*request, *context.files);
  if (!text.ok()) return Fail(context, text.status(), kExitFailed);
  return Print(context, *text);
}

// Returns the path of this program's file, whatever it was called by.
std::string OwnPath(const std::string& program) {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : program;
}

int StartProcesses(const LaunchOptions& options,
                   const CommandContext& context) {
  LaunchContext launch;
  launch.program = OwnPath(context.program);
  launch.called_by = context.program;
  launch.environment = context.environment;
  launch.now = absl::Now();
  launch.group.on_terminal =
      context.rewrites_lines && options.output_dir.empty();
  launch.group.colored =
      launch.group.on_terminal && std::getenv("NO_COLOR") == nullptr;
  const absl::StatusOr<base::GroupEnd> end = Launch(options, launch);
  if (!end.ok()) return Fail(context, end.status());
  if (!end->words.empty()) {
    context.write_error(absl::StrCat("trainer: ", end->words, "\n"));
  }
  return end->exit_code;
}

// Reports an error of the launched command once, before each process would.
absl::Status CheckLaunched(const std::vector<std::string>& command,
                           base::FileSystem& files) {
  const absl::StatusOr<TrainOptions> train =
      ParseTrain({command.begin() + 1, command.end()});
  if (!train.ok()) return train.status();
  if (train->action != TrainAction::kTrain) {
    return absl::InvalidArgumentError(
        "only runs are launched; give --help, --print-config and the like to "
        "\"trainer train\" itself");
  }
  const ConfigSource& source = train->source;
  if (source.file == "/dev/stdin") {
    return absl::InvalidArgumentError(
        "--config=/dev/stdin: the processes have an empty input; write it into "
        "a file");
  }
  return LoadConfig(files, source.file, source.settings).status();
}

int RunLaunch(const std::vector<std::string>& arguments,
              const CommandContext& context) {
  const absl::StatusOr<LaunchOptions> options = ParseLaunch(arguments);
  if (!options.ok()) return Fail(context, options.status(), kExitUsage);
  if (options->help) return Print(context, LaunchHelp());
  if (options->program.empty()) {
    const absl::Status checked =
        CheckLaunched(options->command, *context.files);
    if (!checked.ok()) return Fail(context, checked, kExitUsage);
  }
  return StartProcesses(*options, context);
}

int RunDoctor(const std::vector<std::string>& arguments,
              const CommandContext& context) {
  const absl::StatusOr<DoctorOptions> options = ParseDoctor(arguments);
  if (!options.ok()) return Fail(context, options.status(), kExitUsage);
  if (options->help) return Print(context, DoctorHelp());
  if (options->listen) {
    context.write(absl::StrCat("listening at port ", options->port,
                               " for other doctors; Ctrl-C ends it\n"));
    return Fail(context, ListenForDoctors(*options, Version()), kExitFailed);
  }
  const std::vector<Finding> findings = Examine(*options, Version());
  context.write(FormatFindings(findings));
  return HasProblem(findings) ? kExitFailed : kExitOk;
}

}  // namespace

Command ProfileCommand() {
  return {"profile", "[--config=FILE] [options]",
          "where the time of a step goes", ProfileHelp, RunProfile};
}

Command ReportCommand() {
  return {"report", "RUN-DIR [--output=FILE]",
          "a page of a run: executed and planned steps, waiting, memory, "
          "curves",
          ReportHelp, RunReport};
}

Command LaunchCommand() {
  return {"launch", "--nproc-per-node=K -- train ...",
          "the same by K processes, on one node or on several", LaunchHelp,
          RunLaunch};
}

Command DoctorCommand() {
  return {"doctor", "[--hosts=A,B]", "whether a job can run here", DoctorHelp,
          RunDoctor};
}

}  // namespace troupe::tools

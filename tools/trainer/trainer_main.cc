#include "tools/trainer/trainer_main.h"

#include <limits.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/file_system.h"
#include "data/registry.h"
#include "nn/kernels/kernel_choices.h"
#include "tools/profile/profile_command.h"
#include "tools/report/report_command.h"
#include "tools/trainer/commands/certs_command.h"
#include "tools/trainer/commands/command_line.h"
#include "tools/trainer/commands/evaluate_command.h"
#include "tools/trainer/commands/export_command.h"
#include "tools/trainer/commands/generate_command.h"
#include "tools/trainer/commands/help.h"
#include "tools/trainer/commands/plan_command.h"
#include "tools/trainer/commands/predict_command.h"
#include "tools/trainer/commands/train_command.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/config/model_builder.h"
#include "tools/trainer/doctor/doctor_command.h"
#include "tools/trainer/launch/cluster_setup.h"
#include "tools/trainer/launch/foreign_launchers.h"
#include "tools/trainer/launch/launch_command.h"
#include "tools/trainer/launch/launchers.h"
#include "tools/trainer/launch/start_words.h"
#include "tools/trainer/launch/variables.h"
#include "tools/trainer/terminal/display.h"
#include "tools/trainer/terminal/exit_codes.h"
#include "tools/trainer/terminal/last_words.h"
#include "tools/trainer/terminal/version.h"

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

// mpirun gives processes a terminal that is none of a user's, and hands on what
// they write to it, to a file perhaps; so does srun --pty.
bool HasTerminal(const Placement& placement) {
  return isatty(STDOUT_FILENO) && placement.found_by != kOpenMpi &&
         placement.found_by != kSlurm;
}

Display::Options DisplayOptions(const LogConfig& config,
                                const Placement& placement) {
  const auto is_on = [&](const std::string& value) {
    return value == "on" || (value == "auto" && HasTerminal(placement));
  };
  Display::Options options;
  options.bar = is_on(config.progress);
  options.tables = is_on(config.model_table);
  options.log_every = config.every;
  options.columns = TerminalColumns;
  return options;
}

int RunTrain(const LoadedConfig& loaded, const Placement& placement,
             const StartWords& start, base::FileSystem& files) {
  Display display(DisplayOptions(loaded.config.log, placement), WriteOut);
  const TrainOutcome outcome = Train(loaded, start, files, display);
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

int RunEvaluate(const Command& command) {
  base::PosixFileSystem files;
  absl::StatusOr<LoadedConfig> loaded =
      LoadConfig(files, command.config, command.settings);
  if (!loaded.ok()) return Fail(loaded.status(), kExitUsage);
  Display::Options options;
  options.columns = TerminalColumns;
  Display display(options, WriteOut);
  const absl::Status status = EvaluateCheckpoint(
      *std::move(loaded), command.checkpoint, files, display);
  if (status.ok()) return kExitOk;
  return Fail(status,
              absl::IsInvalidArgument(status) ? kExitUsage : kExitFailed);
}

int RunCerts(const CertsOptions& options) {
  const absl::StatusOr<std::string> text = MakeCerts(options, absl::Now());
  if (!text.ok()) {
    return Fail(text.status(), absl::IsInvalidArgument(text.status())
                                   ? kExitUsage
                                   : kExitFailed);
  }
  WriteOut(*text);
  return kExitOk;
}

int RunSummary(const TrainerConfig& config, base::FileSystem& files) {
  std::optional<data::SampleSpec> sample = data::KnownSampleSpec(config.data);
  if (!sample) {
    data::DatasetOptions options = config.data;
    options.files = &files;
    const absl::StatusOr<data::DataSplits> splits = data::OpenDataset(options);
    if (!splits.ok()) return Fail(splits.status(), kExitFailed);
    sample = splits->train->spec();
  }
  const absl::StatusOr<nn::ModelSummary> summary = SummaryOf(config, *sample);
  if (!summary.ok()) return Fail(summary.status(), kExitUsage);
  WriteOut(summary->ToString());
  return kExitOk;
}

int RunExport(const ExportOptions& options) {
  base::PosixFileSystem files;
  const absl::StatusOr<std::string> text = ExportWeights(options, files);
  if (!text.ok()) {
    return Fail(text.status(), absl::IsInvalidArgument(text.status())
                                   ? kExitUsage
                                   : kExitFailed);
  }
  WriteOut(*text);
  return kExitOk;
}

int RunReport(const ReportRequest& request) {
  base::PosixFileSystem files;
  const absl::StatusOr<std::string> text = WriteReport(request, files);
  if (!text.ok()) return Fail(text.status(), kExitFailed);
  WriteOut(*text);
  return kExitOk;
}

// Runs a command that has a run's configuration, and writes as it goes until
// nobody reads any more.
template <typename Request>
int RunOther(
    const Command& command, const Request& request,
    absl::Status (*run)(const LoadedConfig&, const Request&, base::FileSystem&,
                        const std::function<bool(absl::string_view)>&)) {
  base::PosixFileSystem files;
  const absl::StatusOr<LoadedConfig> loaded =
      LoadConfig(files, command.config, command.settings);
  if (!loaded.ok()) return Fail(loaded.status(), kExitUsage);
  const absl::Status status =
      run(*loaded, request, files, [](absl::string_view text) {
        WriteOut(text);
        return std::ferror(stdout) == 0;
      });
  if (status.ok()) return kExitOk;
  return Fail(status,
              absl::IsInvalidArgument(status) ? kExitUsage : kExitFailed);
}

int RunDoctor(const DoctorOptions& options) {
  if (options.listen) {
    WriteOut(absl::StrCat("listening at port ", options.port,
                          " for other doctors; Ctrl-C ends it\n"));
    const absl::Status status = ListenForDoctors(options, Version());
    return Fail(status, kExitFailed);
  }
  const std::vector<Finding> findings = Examine(options, Version());
  WriteOut(FormatFindings(findings));
  return HasProblem(findings) ? kExitFailed : kExitOk;
}

// This very program, whatever it was called by.
std::string OwnPath(const std::string& program) {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : program;
}

int RunLaunch(const LaunchOptions& options, const std::string& program) {
  LaunchContext context;
  context.program = OwnPath(program);
  context.called_by = program;
  context.environment = environ;
  context.now = absl::Now();
  context.group.on_terminal =
      isatty(STDOUT_FILENO) && options.output_dir.empty();
  context.group.colored =
      context.group.on_terminal && std::getenv("NO_COLOR") == nullptr;
  const absl::StatusOr<GroupEnd> end = Launch(options, context);
  if (!end.ok()) {
    return Fail(end.status(), absl::IsInvalidArgument(end.status())
                                  ? kExitUsage
                                  : kExitFailed);
  }
  if (!end->words.empty()) {
    std::fprintf(stderr, "trainer: %s\n", end->words.c_str());
  }
  return end->exit_code;
}

// What every process would refuse is refused once, here.
int CheckAndLaunch(const LaunchOptions& options, const std::string& program) {
  const absl::StatusOr<Command> command = ParseCommandLine(options.command);
  if (!command.ok()) return Fail(command.status(), kExitUsage);
  if (command->kind != CommandKind::kTrain) {
    return Fail(absl::InvalidArgumentError(
                    "only a run can be launched: ask for help, or for the "
                    "configuration, by \"trainer train\" without launch"),
                kExitUsage);
  }
  if (command->config == "/dev/stdin") {
    return Fail(absl::InvalidArgumentError(
                    "--config=/dev/stdin: the processes have an empty input; "
                    "write it into a file"),
                kExitUsage);
  }
  base::PosixFileSystem files;
  const absl::StatusOr<LoadedConfig> loaded =
      LoadConfig(files, command->config, command->settings);
  if (!loaded.ok()) return Fail(loaded.status(), kExitUsage);
  return RunLaunch(options, program);
}

// Tells the configuration which process of the job this is.
absl::Status Place(const Placement& placement, const Command& command,
                   base::FileSystem& files, LoadedConfig* loaded) {
  if (command.insecure_network && placement.processes > 1) {
    WriteOut(
        "warning: --insecure-network: whoever reaches the ports of this job "
        "can end it, or worse\n");
  }
  TROUPE_ASSIGN_OR_RETURN(std::vector<Setting> more,
                          RankSettings(placement, *loaded));
  if (!more.empty()) {
    std::vector<Setting> settings = command.settings;
    settings.insert(settings.end(), more.begin(), more.end());
    TROUPE_ASSIGN_OR_RETURN(*loaded,
                            LoadConfig(files, command.config, settings));
    loaded->settings = command.settings;
  }
  TROUPE_ASSIGN_OR_RETURN(
      loaded->config.job.cluster,
      ClusterOf(placement, *loaded, command.insecure_network));
  if (auto& cluster = loaded->config.job.cluster; cluster.has_value()) {
    cluster->warn = [](const std::string& words) {
      WriteOut(absl::StrCat("warning: ", words, "\n"));
    };
  }
  return absl::OkStatus();
}

// "auto" and "off" become a folder, or none.
void ResolveKernelCache(const Variables& environment, TrainerConfig& config) {
  if (config.kernel_cache == kAutoKernelCache) {
    config.kernel_cache = nn::KernelCacheFolder(
        environment.Text("XDG_CACHE_HOME"), environment.Text("HOME"));
  } else if (config.kernel_cache == kNoKernelCache) {
    config.kernel_cache.clear();
  }
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
    case CommandKind::kEvaluateHelp:
      WriteOut(EvaluateHelp());
      return kExitOk;
    case CommandKind::kEvaluate:
      return RunEvaluate(*command);
    case CommandKind::kLaunchHelp:
      WriteOut(LaunchHelp());
      return kExitOk;
    case CommandKind::kCertsHelp:
      WriteOut(CertsHelp());
      return kExitOk;
    case CommandKind::kCerts:
      return RunCerts(command->certs);
    case CommandKind::kDoctorHelp:
      WriteOut(DoctorHelp());
      return kExitOk;
    case CommandKind::kDoctor:
      return RunDoctor(command->doctor);
    case CommandKind::kExportHelp:
      WriteOut(ExportHelp());
      return kExitOk;
    case CommandKind::kExport:
      return RunExport(command->exporting);
    case CommandKind::kGenerateHelp:
      WriteOut(GenerateHelp());
      return kExitOk;
    case CommandKind::kGenerate:
      return RunOther(*command, command->generate, GenerateText);
    case CommandKind::kPredictHelp:
      WriteOut(PredictHelp());
      return kExitOk;
    case CommandKind::kPredict:
      return RunOther(*command, command->predict, Predict);
    case CommandKind::kPlanHelp:
      WriteOut(PlanHelp());
      return kExitOk;
    case CommandKind::kPlan:
      return RunOther(*command, command->plan, ShowPlan);
    case CommandKind::kProfileHelp:
      WriteOut(ProfileHelp());
      return kExitOk;
    case CommandKind::kProfile:
      return RunOther(*command, command->profile, ProfileSteps);
    case CommandKind::kReportHelp:
      WriteOut(ReportHelp());
      return kExitOk;
    case CommandKind::kReport:
      return RunReport(command->report);
    case CommandKind::kLaunch:
      return CheckAndLaunch(command->launch, program);
    case CommandKind::kPrintConfig:
    case CommandKind::kSummary:
    case CommandKind::kTrain:
      break;
  }
  base::PosixFileSystem files;
  absl::StatusOr<LoadedConfig> loaded =
      LoadConfig(files, command->config, command->settings);
  if (!loaded.ok()) return Fail(loaded.status(), kExitUsage);
  if (command->kind == CommandKind::kPrintConfig) {
    WriteOut(PrintConfig(*loaded));
    return kExitOk;
  }
  if (command->kind == CommandKind::kSummary) {
    return RunSummary(loaded->config, files);
  }
  const Variables environment = ReadEnvironment(environ);
  const absl::StatusOr<Placement> placement =
      FindPlacement(environment, command->placement);
  if (!placement.ok()) return Fail(placement.status(), kExitUsage);
  if (!placement->found_by.empty()) {
    WriteOut(absl::StrCat(placement->ToString(), "\n"));
  }
  if (!placement->hint.empty()) WriteOut(absl::StrCat(placement->hint, "\n"));
  const absl::Status placed = Place(*placement, *command, files, &*loaded);
  if (!placed.ok()) {
    return Fail(placed,
                absl::IsInvalidArgument(placed) ? kExitUsage : kExitFailed);
  }
  ResolveKernelCache(environment, loaded->config);
  return RunTrain(
      *loaded, *placement,
      WordsOfStart(program, *placement, environment, command->start_options),
      files);
}

}  // namespace

int TrainerMain(int argc, char** argv) {
  SayLastWords();
  // Tests look for cycles of locks; here that costs ten times a lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const std::string program = argc > 0 ? argv[0] : "trainer";
  const int code = Main(
      program, std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  if (code == kExitFailed) {
    std::fflush(nullptr);
    std::_Exit(code);  // threads of a failed job may still be there
  }
  return code;
}

}  // namespace troupe::tools

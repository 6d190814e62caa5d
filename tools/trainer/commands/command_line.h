// What was asked for on the command line.
//
//   const std::vector<std::string> arguments(argv + 1, argv + argc);
//   TROUPE_ASSIGN_OR_RETURN(Command command, ParseCommandLine(arguments));
//   if (command.kind == CommandKind::kHelp) std::cout << GeneralHelp();
//
// Options are written --name=value or --name value.

#ifndef TOOLS_TRAINER_COMMANDS_COMMAND_LINE_H_
#define TOOLS_TRAINER_COMMANDS_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/profile/profile_command.h"
#include "tools/report/report_command.h"
#include "tools/trainer/commands/certs_command.h"
#include "tools/trainer/commands/export_command.h"
#include "tools/trainer/commands/generate_command.h"
#include "tools/trainer/commands/plan_command.h"
#include "tools/trainer/commands/predict_command.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/doctor/doctor_command.h"
#include "tools/trainer/launch/launch_command.h"
#include "tools/trainer/launch/start_words.h"
#include "tools/trainer/launch/variables.h"

namespace troupe::tools {

enum class CommandKind {
  kHelp,
  kVersion,
  kTrainHelp,
  kTrainHelpMarkdown,
  kPrintConfig,
  kSummary,
  kTrain,
  kEvaluateHelp,
  kEvaluate,
  kLaunchHelp,
  kLaunch,
  kCertsHelp,
  kCerts,
  kDoctorHelp,
  kDoctor,
  kExportHelp,
  kExport,
  kGenerateHelp,
  kGenerate,
  kPredictHelp,
  kPredict,
  kPlanHelp,
  kPlan,
  kProfileHelp,
  kProfile,
  kReportHelp,
  kReport,
};

struct Command {
  CommandKind kind = CommandKind::kHelp;
  std::string config;  // path; empty: none
  std::vector<Setting> settings;
  std::string checkpoint;  // path; of kEvaluate
  Variables placement;     // options that say which process this is
  bool insecure_network = false;
  // These two, as they were written.
  std::vector<std::string> start_options;
  LaunchOptions launch;      // of kLaunch
  CertsOptions certs;        // of kCerts
  DoctorOptions doctor;      // of kDoctor
  ExportOptions exporting;   // of kExport
  GenerateRequest generate;  // of kGenerate
  PredictRequest predict;    // of kPredict
  PlanRequest plan;          // of kPlan
  ProfileRequest profile;    // of kProfile
  ReportRequest report;      // of kReport
};

// kInvalidArgument: one line that says what was not understood, and what is.
absl::StatusOr<Command> ParseCommandLine(
    const std::vector<std::string>& arguments);

// The command that asks for the same again, quoted for the shell. `start` is
// how it was started; of the settings of the command line it leaves out what is
// of one run only (resume, replace, --trace). `length`, where not empty, is
// written in place of the run's length: "train.epochs=8".
std::string FormatCommand(const StartWords& start, const std::string& config,
                          absl::Span<const Setting> settings,
                          const std::string& length = "");

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_COMMAND_LINE_H_

#include "tools/trainer/commands/command_line.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tools/trainer/terminal/arguments.h"

namespace troupe::tools {
namespace {

absl::Status Usage(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

absl::StatusOr<Setting> ParseSet(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Usage(absl::StrCat("--set ", text,
                              ": write --set section.key=value, such as --set "
                              "train.steps=100"));
  }
  Setting setting;
  setting.key = text.substr(0, equals);
  setting.value = text.substr(equals + 1);
  setting.origin = absl::StrCat("--set ", setting.key);
  return setting;
}

// Options of `trainer train`.
class TrainParser {
 public:
  explicit TrainParser(Arguments arguments) : arguments_(arguments) {
    command_.kind = CommandKind::kTrain;
  }

  absl::StatusOr<Command> Parse() {
    while (!arguments_.Done()) {
      TROUPE_RETURN_IF_ERROR(ParseOne(arguments_.Next()));
    }
    // It divides by mesh.pp, which any other setting may change.
    if (ranks_) command_.settings.push_back(*ranks_);
    // A model is as large however long it is trained.
    if (command_.kind == CommandKind::kSummary) {
      command_.settings.push_back({"train.steps", "1", "--summary"});
    }
    return command_;
  }

 private:
  absl::Status ParseOne(const std::string& argument) {
    const Option option = ParseOption(argument);
    const std::string& name = option.name;
    if (name == "--config") {
      TROUPE_ASSIGN_OR_RETURN(
          command_.config,
          arguments_.Value(option, "--config=examples/glyphs/glyphs.toml"));
    } else if (name == "--set") {
      TROUPE_ASSIGN_OR_RETURN(
          const std::string text,
          arguments_.Value(option, "--set train.steps=100"));
      TROUPE_ASSIGN_OR_RETURN(Setting setting, ParseSet(text));
      command_.settings.push_back(std::move(setting));
    } else if (name == "--ranks") {
      TROUPE_ASSIGN_OR_RETURN(const std::string ranks,
                              arguments_.Value(option, "--ranks=2"));
      ranks_ = Setting{kRanksSetting, ranks, name};
    } else if (name == "--init-from") {
      TROUPE_ASSIGN_OR_RETURN(
          const std::string file,
          arguments_.Value(option, "--init-from=resnet18.safetensors"));
      command_.settings.push_back({"model.init_from", file, name});
    } else if (name == "--run-dir") {
      TROUPE_ASSIGN_OR_RETURN(const std::string folder,
                              arguments_.Value(option, "--run-dir=runs/mnist"));
      command_.settings.push_back({"log.run_dir", folder, name});
    } else if (name == "--trace") {
      TROUPE_ASSIGN_OR_RETURN(const std::string file,
                              arguments_.Value(option, "--trace=trace.json"));
      command_.settings.push_back({"trace.file", file, name});
    } else if (const char* example = PlacementExample(name)) {
      TROUPE_ASSIGN_OR_RETURN(const std::string value,
                              arguments_.Value(option, example));
      command_.placement.Set(name, value);
      command_.start_options.push_back(absl::StrCat(name, "=", value));
    } else {
      return ParseFlag(argument);
    }
    return absl::OkStatus();
  }

  // Of an option that says which process this is; null: it says nothing of it.
  static const char* PlacementExample(const std::string& name) {
    for (const auto& [option, example] :
         {std::pair("--process", "--process=0"),
          std::pair("--processes", "--processes=2"),
          std::pair("--master", "--master=n1:29400"),
          std::pair("--certs", "--certs=certs")}) {
      if (name == option) return example;
    }
    return nullptr;
  }

  // Options without a value.
  absl::Status ParseFlag(const std::string& argument) {
    if (argument == "--resume") {
      command_.settings.push_back({"checkpoint.resume", "true", argument});
    } else if (argument == "--insecure-network") {
      command_.insecure_network = true;
      command_.start_options.push_back(argument);
    } else if (argument == "--print-config") {
      command_.kind = CommandKind::kPrintConfig;
    } else if (argument == "--summary") {
      command_.kind = CommandKind::kSummary;
    } else if (argument == "--help" || argument == "-h") {
      command_.kind = CommandKind::kTrainHelp;
    } else if (argument == "--help=markdown") {
      command_.kind = CommandKind::kTrainHelpMarkdown;
    } else if (absl::StartsWith(argument, "-")) {
      return Usage(absl::StrCat("unknown option ", argument,
                                "; \"trainer train --help\" lists all"));
    } else {
      return Usage(absl::StrCat("unexpected argument ", argument,
                                "; the file is given as --config=", argument));
    }
    return absl::OkStatus();
  }

  Arguments arguments_;
  Command command_;
  std::optional<Setting> ranks_;
};

constexpr char kCheckpointOption[] = "--checkpoint";

// The configuration of a run, from options of `trainer train`, for a command
// that does not train as long as it says.
absl::Status ReadRun(const std::vector<std::string>& of_train,
                     Command& command) {
  TROUPE_ASSIGN_OR_RETURN(const Command train,
                          TrainParser(Arguments(of_train)).Parse());
  command.config = train.config;
  command.settings = train.settings;
  // A configuration says how long; `of_train` need not.
  command.settings.push_back({"train.steps", "1", "a command of one step"});
  return absl::OkStatus();
}

// Options of `trainer evaluate`.
absl::StatusOr<Command> ParseEvaluate(Arguments arguments) {
  Command command;
  command.kind = CommandKind::kEvaluate;
  std::vector<std::string> of_train;
  while (!arguments.Done()) {
    const std::string argument = arguments.Next();
    const Option option = ParseOption(argument);
    if (option.name == kCheckpointOption) {
      TROUPE_ASSIGN_OR_RETURN(
          command.checkpoint,
          arguments.Value(option, "--checkpoint=checkpoints/glyphs/best"));
    } else if (argument == "--help" || argument == "-h") {
      command.kind = CommandKind::kEvaluateHelp;
      return command;
    } else if (option.name == "--config" || option.name == "--set" ||
               option.name == "--ranks") {
      TROUPE_ASSIGN_OR_RETURN(
          const std::string value,
          arguments.Value(option, "what \"trainer evaluate --help\" shows"));
      of_train.push_back(absl::StrCat(option.name, "=", value));
    } else {
      return Usage(absl::StrCat("unknown option ", argument,
                                "; \"trainer evaluate --help\" lists all"));
    }
  }
  if (command.checkpoint.empty()) {
    return Usage(
        "no checkpoint to evaluate; write "
        "--checkpoint=checkpoints/glyphs/best, say");
  }
  TROUPE_RETURN_IF_ERROR(ReadRun(of_train, command));
  return command;
}

}  // namespace

std::string FormatCommand(const StartWords& start, const std::string& config,
                          absl::Span<const Setting> settings,
                          const std::string& length) {
  std::string text = absl::StrCat(start.before, " train", start.options);
  if (!config.empty()) {
    absl::StrAppend(&text, " ", Quoted(absl::StrCat("--config=", config)));
  }
  for (const Setting& s : settings) {
    if (s.origin == "--trace" || s.key == "checkpoint.resume" ||
        s.key == "checkpoint.replace") {
      continue;
    }
    const bool is_length = s.key == "train.steps" || s.key == "train.epochs";
    if (is_length && !length.empty()) continue;
    if (s.key == kRanksSetting) {
      absl::StrAppend(&text, " --ranks=", s.value);
    } else {
      absl::StrAppend(&text, " --set ",
                      Quoted(absl::StrCat(s.key, "=", s.value)));
    }
  }
  if (!length.empty()) absl::StrAppend(&text, " --set ", length);
  return text;
}

namespace {

absl::StatusOr<Command> ParseLaunchCommand(
    const std::vector<std::string>& arguments) {
  Command command;
  TROUPE_ASSIGN_OR_RETURN(command.launch, ParseLaunch(arguments));
  command.kind =
      command.launch.help ? CommandKind::kLaunchHelp : CommandKind::kLaunch;
  return command;
}

absl::StatusOr<Command> ParseCertsCommand(
    const std::vector<std::string>& arguments) {
  Command command;
  TROUPE_ASSIGN_OR_RETURN(command.certs, ParseCerts(arguments));
  command.kind =
      command.certs.help ? CommandKind::kCertsHelp : CommandKind::kCerts;
  return command;
}

absl::StatusOr<Command> ParseDoctorCommand(
    const std::vector<std::string>& arguments) {
  Command command;
  TROUPE_ASSIGN_OR_RETURN(command.doctor, ParseDoctor(arguments));
  command.kind =
      command.doctor.help ? CommandKind::kDoctorHelp : CommandKind::kDoctor;
  return command;
}

absl::StatusOr<Command> ParseExportCommand(
    const std::vector<std::string>& arguments) {
  Command command;
  TROUPE_ASSIGN_OR_RETURN(command.exporting, ParseExport(arguments));
  command.kind =
      command.exporting.help ? CommandKind::kExportHelp : CommandKind::kExport;
  return command;
}

// Takes a configuration over into `command`.
absl::Status ReadRun(const std::string& config,
                     const std::vector<std::string>& sets,
                     const std::string& ranks, Command& command) {
  std::vector<std::string> of_train;
  if (!config.empty()) of_train.push_back(absl::StrCat("--config=", config));
  for (const std::string& set : sets) {
    of_train.push_back(absl::StrCat("--set=", set));
  }
  if (!ranks.empty()) of_train.push_back(absl::StrCat("--ranks=", ranks));
  return ReadRun(of_train, command);
}

absl::Status ReadSavedRun(const SavedRun& run, Command& command) {
  return ReadRun(run.config, run.sets, /*ranks=*/"", command);
}

absl::StatusOr<Command> ParseGenerateCommand(
    const std::vector<std::string>& arguments) {
  Command command;
  TROUPE_ASSIGN_OR_RETURN(command.generate, ParseGenerate(arguments));
  command.kind = command.generate.help ? CommandKind::kGenerateHelp
                                       : CommandKind::kGenerate;
  TROUPE_RETURN_IF_ERROR(ReadSavedRun(command.generate.run, command));
  return command;
}

absl::StatusOr<Command> ParsePredictCommand(
    const std::vector<std::string>& arguments) {
  Command command;
  TROUPE_ASSIGN_OR_RETURN(command.predict, ParsePredict(arguments));
  command.kind =
      command.predict.help ? CommandKind::kPredictHelp : CommandKind::kPredict;
  TROUPE_RETURN_IF_ERROR(ReadSavedRun(command.predict.run, command));
  return command;
}

absl::StatusOr<Command> ParsePlanCommand(
    const std::vector<std::string>& arguments) {
  Command command;
  TROUPE_ASSIGN_OR_RETURN(command.plan, ParsePlan(arguments));
  const PlanRequest& request = command.plan;
  command.kind = request.help ? CommandKind::kPlanHelp : CommandKind::kPlan;
  TROUPE_RETURN_IF_ERROR(
      ReadRun(request.config, request.sets, request.ranks, command));
  return command;
}

absl::StatusOr<Command> ParseProfileCommand(
    const std::vector<std::string>& arguments) {
  Command command;
  TROUPE_ASSIGN_OR_RETURN(command.profile, ParseProfile(arguments));
  const ProfileRequest& request = command.profile;
  command.kind =
      request.help ? CommandKind::kProfileHelp : CommandKind::kProfile;
  TROUPE_RETURN_IF_ERROR(
      ReadRun(request.config, request.sets, request.ranks, command));
  return command;
}

absl::StatusOr<Command> ParseReportCommand(
    const std::vector<std::string>& arguments) {
  Command command;
  TROUPE_ASSIGN_OR_RETURN(command.report, ParseReport(arguments));
  command.kind =
      command.report.help ? CommandKind::kReportHelp : CommandKind::kReport;
  return command;
}

}  // namespace

absl::StatusOr<Command> ParseCommandLine(
    const std::vector<std::string>& arguments) {
  Arguments left(arguments);
  const std::string first = left.Done() ? "help" : left.Next();
  if (first == "train") return TrainParser(left).Parse();
  if (first == "evaluate") return ParseEvaluate(left);
  if (first == "launch") return ParseLaunchCommand(left.Rest());
  if (first == "certs") return ParseCertsCommand(left.Rest());
  if (first == "doctor") return ParseDoctorCommand(left.Rest());
  if (first == "export") return ParseExportCommand(left.Rest());
  if (first == "generate") return ParseGenerateCommand(left.Rest());
  if (first == "predict") return ParsePredictCommand(left.Rest());
  if (first == "plan") return ParsePlanCommand(left.Rest());
  if (first == "profile") return ParseProfileCommand(left.Rest());
  if (first == "report") return ParseReportCommand(left.Rest());
  Command command;
  if (first == "--help" || first == "-h") return command;
  if (first == "--version") {
    command.kind = CommandKind::kVersion;
    return command;
  }
  if (first != "help") {
    return Usage(absl::StrCat("unknown command ", first,
                              "; \"trainer help\" shows what there is"));
  }
  if (left.Done()) return command;
  const std::string topic = left.Next();
  if (topic == "train") {
    command.kind = CommandKind::kTrainHelp;
  } else if (topic == "evaluate") {
    command.kind = CommandKind::kEvaluateHelp;
  } else if (topic == "launch") {
    command.kind = CommandKind::kLaunchHelp;
  } else if (topic == "certs") {
    command.kind = CommandKind::kCertsHelp;
  } else if (topic == "doctor") {
    command.kind = CommandKind::kDoctorHelp;
  } else if (topic == "export") {
    command.kind = CommandKind::kExportHelp;
  } else if (topic == "generate") {
    command.kind = CommandKind::kGenerateHelp;
  } else if (topic == "predict") {
    command.kind = CommandKind::kPredictHelp;
  } else if (topic == "plan") {
    command.kind = CommandKind::kPlanHelp;
  } else if (topic == "profile") {
    command.kind = CommandKind::kProfileHelp;
  } else if (topic == "report") {
    command.kind = CommandKind::kReportHelp;
  } else {
    return Usage(absl::StrCat(
        "no help on ", topic,
        "; there is \"trainer help train\", and the same "
        "of evaluate, generate, predict, plan, profile, report, launch, certs, "
        "doctor and export"));
  }
  return command;
}

}  // namespace troupe::tools

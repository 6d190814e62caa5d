#include "tools/trainer/commands/train_options.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "tools/trainer/terminal/arguments.h"
#include "tools/trainer/terminal/options_reader.h"

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

bool IsLength(absl::string_view key) {
  return key == "train.steps" || key == "train.epochs";
}

// Parses the options of `trainer train`.
class TrainParser {
 public:
  explicit TrainParser(const std::vector<std::string>& arguments)
      : arguments_(arguments) {}

  absl::StatusOr<TrainOptions> Parse() {
    while (!arguments_.Done()) {
      TROUPE_RETURN_IF_ERROR(ParseOne(arguments_.Next()));
    }
    // --ranks comes last: it divides by mesh.pp, which any other setting may
    // change.
    if (ranks_) options_.source.settings.push_back(*ranks_);
    // The configuration need not say how long to train: the model's size does
    // not depend on it.
    if (options_.action == TrainAction::kSummary) {
      options_.source.settings.push_back({"train.steps", "1", "--summary"});
    }
    return options_;
  }

 private:
  absl::Status ParseOne(const std::string& argument) {
    const Option option = ParseOption(argument);
    const std::string& name = option.name;
    if (name == "--config") {
      TROUPE_ASSIGN_OR_RETURN(
          options_.source.file,
          arguments_.Value(option, "--config=examples/glyphs/glyphs.toml"));
      TROUPE_RETURN_IF_ERROR(CheckPathOption(name, options_.source.file));
    } else if (name == "--set") {
      TROUPE_ASSIGN_OR_RETURN(
          const std::string text,
          arguments_.Value(option, "--set train.steps=100"));
      TROUPE_ASSIGN_OR_RETURN(Setting setting, ParseSet(text));
      options_.source.settings.push_back(std::move(setting));
    } else if (name == "--ranks") {
      TROUPE_ASSIGN_OR_RETURN(const std::string ranks,
                              arguments_.Value(option, "--ranks=2"));
      ranks_ = Setting{kRanksSetting, ranks, name};
    } else if (name == "--deepspeed") {
      TROUPE_ASSIGN_OR_RETURN(
          const std::string file,
          arguments_.Value(option, "--deepspeed=ds_config.json"));
      TROUPE_RETURN_IF_ERROR(CheckPathOption(name, file));
      options_.source.settings.push_back({kDeepSpeedSetting, file, name});
    } else if (name == "--init-from") {
      TROUPE_ASSIGN_OR_RETURN(
          const std::string file,
          arguments_.Value(option, "--init-from=resnet18.safetensors"));
      options_.source.settings.push_back({"model.init_from", file, name});
    } else if (name == "--run-dir") {
      TROUPE_ASSIGN_OR_RETURN(const std::string folder,
                              arguments_.Value(option, "--run-dir=runs/mnist"));
      options_.source.settings.push_back({"log.run_dir", folder, name});
    } else if (name == "--trace") {
      TROUPE_ASSIGN_OR_RETURN(const std::string file,
                              arguments_.Value(option, "--trace=trace.json"));
      options_.source.settings.push_back({"trace.file", file, name});
    } else if (const char* example = PlacementExample(name)) {
      TROUPE_ASSIGN_OR_RETURN(const std::string value,
                              arguments_.Value(option, example));
      if (name == "--certs") {
        TROUPE_RETURN_IF_ERROR(CheckPathOption(name, value));
      }
      options_.placement.Set(name, value);
      options_.start_options.push_back(absl::StrCat(name, "=", value));
    } else {
      return ParseFlag(argument);
    }
    return absl::OkStatus();
  }

  // Returns the example of an option that says which process this is; null for
  // other options.
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

  // Parses an option without a value.
  absl::Status ParseFlag(const std::string& argument) {
    if (argument == "--resume") {
      options_.source.settings.push_back(
          {"checkpoint.resume", "true", argument});
    } else if (argument == "--insecure-network") {
      options_.insecure_network = true;
      options_.start_options.push_back(argument);
    } else if (argument == "--print-config") {
      options_.action = TrainAction::kPrintConfig;
    } else if (argument == "--summary") {
      options_.action = TrainAction::kSummary;
    } else if (argument == "--help" || argument == "-h") {
      options_.action = TrainAction::kHelp;
    } else if (argument == "--help=markdown") {
      options_.action = TrainAction::kHelpMarkdown;
    } else if (absl::StartsWith(argument, "-")) {
      return Usage(absl::StrCat("unknown option ", argument,
                                "; run \"trainer train --help\" for a list"));
    } else {
      return Usage(absl::StrCat("unexpected argument ", argument,
                                "; give the file as --config=", argument));
    }
    return absl::OkStatus();
  }

  Arguments arguments_;
  TrainOptions options_;
  std::optional<Setting> ranks_;
};

}  // namespace

absl::StatusOr<TrainOptions> ParseTrain(
    const std::vector<std::string>& arguments) {
  return TrainParser(arguments).Parse();
}

absl::StatusOr<ConfigSource> ParseConfigSource(
    const std::vector<std::string>& arguments) {
  TROUPE_ASSIGN_OR_RETURN(TrainOptions train, ParseTrain(arguments));
  train.source.settings.push_back(
      {"train.steps", "1", "a command of one step"});
  return std::move(train.source);
}

absl::StatusOr<ConfigSource> ParseConfigSource(
    const std::string& config, const std::vector<std::string>& sets,
    const std::string& ranks) {
  std::vector<std::string> arguments;
  if (!config.empty()) arguments.push_back(absl::StrCat("--config=", config));
  for (const std::string& set : sets) {
    arguments.push_back(absl::StrCat("--set=", set));
  }
  if (!ranks.empty()) arguments.push_back(absl::StrCat("--ranks=", ranks));
  return ParseConfigSource(arguments);
}

int RunOnConfig(const CommandContext& context, const ConfigSource& source,
                const std::function<absl::Status(const LoadedConfig&)>& run) {
  const absl::StatusOr<LoadedConfig> loaded =
      LoadConfig(*context.files, source.file, source.settings);
  if (!loaded.ok()) return Fail(context, loaded.status(), kExitUsage);
  const absl::Status status = run(*loaded);
  return status.ok() ? kExitOk : Fail(context, status);
}

std::string FormatCommand(const StartWords& start, const std::string& config,
                          absl::Span<const Setting> settings,
                          const std::string& change) {
  const std::string changed = change.substr(0, change.find('='));
  // Whether a later setting, or `change`, is in the place of this one.
  const auto replaced = [&](const Setting& setting) {
    if (setting.key == changed ||
        (IsLength(setting.key) && IsLength(changed))) {
      return true;
    }
    const auto same = [&](const Setting& s) { return s.key == setting.key; };
    return &setting != &*std::find_if(settings.rbegin(), settings.rend(), same);
  };
  std::string text = absl::StrCat(start.before, " train", start.options);
  if (!config.empty()) {
    absl::StrAppend(&text, " ", Quoted(absl::StrCat("--config=", config)));
  }
  for (const Setting& s : settings) {
    if (s.origin == "--trace" || s.key == "checkpoint.resume" ||
        s.key == "checkpoint.replace" || replaced(s)) {
      continue;
    }
    if (s.key == kRanksSetting) {
      absl::StrAppend(&text, " --ranks=", s.value);
    } else if (s.key == kDeepSpeedSetting) {
      absl::StrAppend(&text, " ", Quoted(absl::StrCat(s.origin, "=", s.value)));
    } else {
      absl::StrAppend(&text, " --set ",
                      Quoted(absl::StrCat(s.key, "=", s.value)));
    }
  }
  if (!change.empty()) absl::StrAppend(&text, " --set ", change);
  return text;
}

}  // namespace troupe::tools

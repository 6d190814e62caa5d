#include "tools/trainer/command_line.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/check.h"

namespace troupe::tools {
namespace {

absl::Status Usage(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

// Arguments from left to right.
class Arguments {
 public:
  explicit Arguments(const std::vector<std::string>& all) : all_(all) {}

  bool Done() const { return at_ == all_.size(); }
  std::string Next() { return all_[at_++]; }

  // The value of `option`: what follows its "=", or the next argument.
  absl::StatusOr<std::string> Value(absl::string_view name,
                                    const std::optional<std::string>& inline_,
                                    absl::string_view example) {
    if (inline_) return *inline_;
    if (!Done()) return Next();
    return Usage(absl::StrCat(name, " needs a value; write ", example));
  }

 private:
  const std::vector<std::string>& all_;
  std::size_t at_ = 0;
};

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
    return command_;
  }

 private:
  absl::Status ParseOne(const std::string& argument) {
    const std::vector<std::string> parts =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    const std::string& name = parts[0];
    std::optional<std::string> value;
    if (parts.size() == 2) value = parts[1];
    if (name == "--config") {
      TROUPE_ASSIGN_OR_RETURN(
          command_.config,
          arguments_.Value(name, value,
                           "--config=examples/glyphs/glyphs.toml"));
    } else if (name == "--set") {
      TROUPE_ASSIGN_OR_RETURN(
          const std::string text,
          arguments_.Value(name, value, "--set train.steps=100"));
      TROUPE_ASSIGN_OR_RETURN(Setting setting, ParseSet(text));
      command_.settings.push_back(std::move(setting));
    } else if (name == "--ranks") {
      TROUPE_ASSIGN_OR_RETURN(const std::string ranks,
                              arguments_.Value(name, value, "--ranks=2"));
      ranks_ = Setting{kRanksSetting, ranks, name};
    } else if (name == "--trace") {
      TROUPE_ASSIGN_OR_RETURN(
          const std::string file,
          arguments_.Value(name, value, "--trace=trace.json"));
      command_.settings.push_back({"trace.file", file, name});
    } else {
      return ParseFlag(argument);
    }
    return absl::OkStatus();
  }

  // Options without a value.
  absl::Status ParseFlag(const std::string& argument) {
    if (argument == "--resume") {
      command_.settings.push_back({"checkpoint.resume", "true", argument});
    } else if (argument == "--print-config") {
      command_.kind = CommandKind::kPrintConfig;
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

// A word as the shell reads it back.
std::string Quoted(const std::string& word) {
  constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace

std::string FormatCommand(const std::string& program, const std::string& config,
                          absl::Span<const Setting> settings,
                          const std::string& length) {
  std::string text = absl::StrCat(Quoted(program), " train");
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

absl::StatusOr<Command> ParseCommandLine(
    const std::vector<std::string>& arguments) {
  Arguments left(arguments);
  const std::string first = left.Done() ? "help" : left.Next();
  if (first == "train") return TrainParser(left).Parse();
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
  if (topic != "train") {
    return Usage(absl::StrCat("no help on ", topic,
                              "; there is \"trainer help train\""));
  }
  command.kind = CommandKind::kTrainHelp;
  return command;
}

}  // namespace troupe::tools

#include "tools/trainer/terminal/options_reader.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "tools/trainer/terminal/path_text.h"

namespace troupe::tools {

absl::Status CheckPathOption(absl::string_view option, absl::string_view path) {
  const std::string wrong = WrongPath(path);
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, "=", path, ": ", wrong));
}

void OptionsReader::Text(const std::string& example, std::string* into) {
  known_[ParseOption(example).name] = {example, [into](const std::string& v) {
                                         *into = v;
                                         return absl::OkStatus();
                                       }};
}

void OptionsReader::Path(const std::string& example, std::string* into) {
  const std::string name = ParseOption(example).name;
  known_[name] = {example, [name, into](const std::string& value) {
                    *into = value;
                    return CheckPathOption(name, value);
                  }};
}

void OptionsReader::Texts(const std::string& example,
                          std::vector<std::string>* into) {
  known_[ParseOption(example).name] = {example, [into](const std::string& v) {
                                         into->push_back(v);
                                         return absl::OkStatus();
                                       }};
}

void OptionsReader::List(const std::string& example,
                         std::vector<std::string>* into) {
  known_[ParseOption(example).name] = {
      example, [into](const std::string& value) {
        *into = absl::StrSplit(value, ',', absl::SkipEmpty());
        return absl::OkStatus();
      }};
}

namespace {

// Reads a number of `Value` within its limits.
template <typename Value, typename Parse>
std::function<absl::Status(const std::string&)> Within(const std::string& name,
                                                       Value min, Value max,
                                                       Value* into,
                                                       Parse parse) {
  return [=](const std::string& text) {
    Value number = 0;
    // A text that is no number gets the error on the limits.
    if (parse(text, &number) && number >= min && number <= max) {
      *into = number;
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        name, "=", text, ": must be a number from ", min, " to ", max));
  };
}

}  // namespace

void OptionsReader::Number(const std::string& example, int min, int max,
                           int* into) {
  const std::string name = ParseOption(example).name;
  known_[name] = {example, Within(name, min, max, into,
                                  [](const std::string& text, int* number) {
                                    return absl::SimpleAtoi(text, number);
                                  })};
}

void OptionsReader::Real(const std::string& example, double min, double max,
                         double* into) {
  const std::string name = ParseOption(example).name;
  known_[name] = {example, Within(name, min, max, into,
                                  [](const std::string& text, double* number) {
                                    return absl::SimpleAtod(text, number);
                                  })};
}

void OptionsReader::Flag(const std::string& name, bool* into) {
  flags_[name] = into;
}

absl::StatusOr<bool> OptionsReader::Read(Arguments& left) {
  while (!left.Done()) {
    const std::string argument = left.Next();
    if (argument == "--" && rest_) return false;
    if (argument == "--help" || argument == "-h") return true;
    if (others_ != nullptr && !absl::StartsWith(argument, "-")) {
      others_->push_back(argument);
      continue;
    }
    TROUPE_RETURN_IF_ERROR(ReadOne(ParseOption(argument), left));
  }
  return false;
}

absl::Status OptionsReader::ReadOne(const Option& option,
                                    Arguments& left) const {
  const auto flag = flags_.find(option.name);
  if (flag != flags_.end() && !option.value) {
    *flag->second = true;
    return absl::OkStatus();
  }
  const auto known = known_.find(option.name);
  if (known != known_.end()) {
    TROUPE_ASSIGN_OR_RETURN(const std::string value,
                            left.Value(option, known->second.example));
    return known->second.take(value);
  }
  if (flag != flags_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option.name, "=", *option.value,
                     ": it takes no value; write ", option.name));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown option ", option.name, "; run \"trainer ", command_,
                   " --help\" for a list", rest_.value_or("")));
}

}  // namespace troupe::tools

// Reads arguments from left to right, for a parser of options.
//
//   Arguments left(arguments);
//   while (!left.Done()) {
//     const Option option = ParseOption(left.Next());
//     if (option.name != "--ranks") continue;
//     TROUPE_ASSIGN_OR_RETURN(std::string ranks,
//                             left.Value(option, "--ranks=2"));
//   }

#ifndef TOOLS_TRAINER_TERMINAL_ARGUMENTS_H_
#define TOOLS_TRAINER_TERMINAL_ARGUMENTS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace troupe::tools {

// "--name=value" or "--name".
struct Option {
  std::string name;
  std::optional<std::string> value;
};

inline Option ParseOption(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos) return {argument, std::nullopt};
  return {argument.substr(0, equals), argument.substr(equals + 1)};
}

// `all` must outlive the object.
class Arguments {
 public:
  explicit Arguments(const std::vector<std::string>& all) : all_(all) {}

  bool Done() const { return at_ == all_.size(); }
  std::string Next() { return all_[at_++]; }
  std::vector<std::string> Rest() {
    const std::vector<std::string> rest(all_.begin() + at_, all_.end());
    at_ = all_.size();
    return rest;
  }

  // Returns the value of `option`: the text after its "=", or the next
  // argument.
  absl::StatusOr<std::string> Value(const Option& option,
                                    absl::string_view example) {
    if (option.value) return *option.value;
    if (!Done()) return Next();
    return absl::InvalidArgumentError(
        absl::StrCat(option.name, " needs a value; write ", example));
  }

 private:
  const std::vector<std::string>& all_;
  std::size_t at_ = 0;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_ARGUMENTS_H_

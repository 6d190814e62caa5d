// What a process was told by name: variables of the environment, options.
//
//   const Variables environment = ReadEnvironment(environ);
//   environment.Has("RANK");    // true
//   environment.Show("RANK");   // "RANK=3", for messages
//   TROUPE_ASSIGN_OR_RETURN(int rank, environment.Number("RANK"));

#ifndef TOOLS_TRAINER_LAUNCH_VARIABLES_H_
#define TOOLS_TRAINER_LAUNCH_VARIABLES_H_

#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace troupe::tools {

// A name that has an empty value counts as not there.
class Variables {
 public:
  Variables() = default;
  explicit Variables(std::map<std::string, std::string> values)
      : values_(std::move(values)) {}

  void Set(const std::string& name, const std::string& value) {
    values_[name] = value;
  }
  bool Has(const std::string& name) const { return !Text(name).empty(); }
  // Empty where it is not there.
  std::string Text(const std::string& name) const;
  // "RANK=3"
  std::string Show(const std::string& name) const;
  // From 0 to a million, which no count of processes reaches.
  //   kInvalidArgument: it is not there, or no such number; names it.
  absl::StatusOr<int> Number(const std::string& name) const;
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

// All of a null-terminated list of "NAME=value".
Variables ReadEnvironment(const char* const* environment);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_VARIABLES_H_

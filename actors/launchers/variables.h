// Named values that a process was given: environment variables or options.
//
//   const Variables environment = ReadEnvironment(environ);
//   environment.Has("RANK");    // true
//   environment.Show("RANK");   // "RANK=3", for messages
//   TROUPE_ASSIGN_OR_RETURN(int rank, environment.Number("RANK"));

#ifndef ACTORS_LAUNCHERS_VARIABLES_H_
#define ACTORS_LAUNCHERS_VARIABLES_H_

#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace troupe::actors {

// A map of names to values. A name with an empty value counts as not set.
class Variables {
 public:
  Variables() = default;
  explicit Variables(std::map<std::string, std::string> values)
      : values_(std::move(values)) {}

  void Set(const std::string& name, const std::string& value) {
    values_[name] = value;
  }
  bool Has(const std::string& name) const { return !Text(name).empty(); }
  // Returns the value; empty if not set.
  std::string Text(const std::string& name) const;
  // Returns "RANK=3", for messages.
  std::string Show(const std::string& name) const;
  // Returns the value as a number from 0 to a million, a limit that no count of
  // processes reaches.
  //   kInvalidArgument: it is not set, or no such number; names it.
  absl::StatusOr<int> Number(const std::string& name) const;
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

// Reads a null-terminated list of "NAME=value".
Variables ReadEnvironment(const char* const* environment);

}  // namespace troupe::actors

#endif  // ACTORS_LAUNCHERS_VARIABLES_H_

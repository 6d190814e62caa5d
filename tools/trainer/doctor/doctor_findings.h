// What a doctor has found, one row each, and how that is shown and sent.
//
//   const std::vector<Finding> findings = {
//       {"clock", Health::kWarning, "nothing keeps it right", "start chrony"}};
//   std::cout << FormatFindings(findings);
//   // clock  warning  nothing keeps it right
//   //        do: start chrony
//   bool fails = HasProblem(findings);

#ifndef TOOLS_TRAINER_DOCTOR_DOCTOR_FINDINGS_H_
#define TOOLS_TRAINER_DOCTOR_DOCTOR_FINDINGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::tools {

enum class Health {
  kOk,
  kWarning,  // a job may run, but slowly, or not everywhere
  kProblem,  // it will not
};

struct Finding {
  std::string what;  // "port 29400"
  Health health = Health::kOk;
  std::string found;
  std::string advice;  // what to do; empty: nothing
};

bool HasProblem(const std::vector<Finding>& findings);

// A table; below each row, what to do.
std::string FormatFindings(const std::vector<Finding>& findings);

// For another doctor: a line each, fields between tabs.
std::string WriteFindings(const std::vector<Finding>& findings);
//   kInvalidArgument: `text` is something else.
absl::StatusOr<std::vector<Finding>> ParseFindings(absl::string_view text);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_DOCTOR_DOCTOR_FINDINGS_H_

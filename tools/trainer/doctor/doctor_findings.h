// Findings of a doctor, one row each, and their forms as text.
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
  kProblem,  // a job will not run
};

struct Finding {
  std::string what;  // "port 29400"
  Health health = Health::kOk;
  std::string found;
  std::string advice;  // action for the user; empty: none
};

bool HasProblem(const std::vector<Finding>& findings);

// Returns a table with the advice below each row.
std::string FormatFindings(const std::vector<Finding>& findings);

// Returns a text for another doctor: a line for each, fields between tabs.
std::string WriteFindings(const std::vector<Finding>& findings);
// Reads the result of WriteFindings().
//   kInvalidArgument: `text` has another form.
absl::StatusOr<std::vector<Finding>> ParseFindings(absl::string_view text);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_DOCTOR_DOCTOR_FINDINGS_H_

#include "tools/trainer/doctor/doctor_findings.h"

#include <algorithm>
#include <cstddef>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace troupe::tools {
namespace {

std::string HealthName(Health health) {
  switch (health) {
    case Health::kOk:
      return "ok";
    case Health::kWarning:
      return "warning";
    case Health::kProblem:
      break;
  }
  return "problem";
}

// Replaces characters that end a field or a line, or move a cursor.
std::string Plain(std::string text) {
  for (char& each : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(each))) each = ' ';
  }
  return text;
}

}  // namespace

bool HasProblem(const std::vector<Finding>& findings) {
  return absl::c_any_of(findings, [](const Finding& each) {
    return each.health == Health::kProblem;
  });
}

std::string FormatFindings(const std::vector<Finding>& findings) {
  std::size_t width = 0;
  for (const Finding& each : findings) {
    width = std::max(width, each.what.size());
  }
  const int columns = static_cast<int>(width) + 2;
  std::string text;
  for (const Finding& each : findings) {
    absl::StrAppendFormat(&text, "%-*s%-9s%s\n", columns, each.what,
                          HealthName(each.health), each.found);
    if (each.advice.empty()) continue;
    absl::StrAppendFormat(&text, "%-*sdo: %s\n", columns, "", each.advice);
  }
  return text;
}

std::string WriteFindings(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& each : findings) {
    absl::StrAppend(&text, Plain(each.what), "\t",
                    static_cast<int>(each.health), "\t", Plain(each.found),
                    "\t", Plain(each.advice), "\n");
  }
  return text;
}

absl::StatusOr<std::vector<Finding>> ParseFindings(absl::string_view text) {
  std::vector<Finding> findings;
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    int health = 0;
    if (fields.size() != 4 || !absl::SimpleAtoi(fields[1], &health) ||
        health < 0 || health > static_cast<int>(Health::kProblem)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", Plain(std::string(line)),
          "\" is no finding of a doctor; start the same trainer there"));
    }
    findings.push_back({Plain(fields[0]), static_cast<Health>(health),
                        Plain(fields[2]), Plain(fields[3])});
  }
  return findings;
}

}  // namespace troupe::tools

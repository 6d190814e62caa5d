// The jobs whose bits tests/golden/job_bits.txt remembers: each model in each
// layout, and what changes how a step runs (schedules, dtypes, clipping, ...).
//
//   for (const BitCase& one : BitCases()) {
//     ExpectGoldenLine(path, one.line(), BitsOf(ReportsOf(one.spec)).numbers);
//   }
//
// Specs are complete but for the folder of checkpoints. They leave no choice to
// the machine: kernels are Troupe's own loops of one instruction set, or the
// reference kernels, and PlanOptions::inline_bytes is set. All jobs in 16 bits
// have the plain loops, which convert by integer operations and multiply in
// f32, so that AVX512-BF16, AMX and F16C are of no matter.

#ifndef TESTS_ACTORS_JOBS_BITS_BIT_CASES_H_
#define TESTS_ACTORS_JOBS_BITS_BIT_CASES_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "actors/spec/job_spec.h"
#include "base/cpu_isa.h"

namespace troupe::actors {

struct BitCase {
  std::string name;     // "lenet dp=2"
  std::string kernels;  // "plain", "avx2", "avx512" or "reference"
  // Instruction set without which the case cannot run.
  base::CpuIsa isa = base::CpuIsa::kPlain;
  JobSpec spec;

  // Names of the lines of the golden file. Reports and plan have lines for the
  // plain loops and the reference kernels alone: other instruction sets do not
  // change the plan, and they compute the reports as they compute the losses.
  std::string line() const { return absl::StrCat(name, " ", kernels); }
  std::string reports_line() const { return absl::StrCat(name, " reports"); }
  std::string plan_line() const { return absl::StrCat(name, " plan"); }
  bool has_reports_and_plan() const { return isa == base::CpuIsa::kPlain; }
};

// Returns all cases, which are made at the first call.
const std::vector<BitCase>& BitCases();

// Prints the name of the line, for GoogleTest's messages.
void PrintTo(const BitCase& one, std::ostream* out);

// Returns the case of BitCases() that has this line.
const BitCase& BitCaseOf(absl::string_view line);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_JOBS_BITS_BIT_CASES_H_

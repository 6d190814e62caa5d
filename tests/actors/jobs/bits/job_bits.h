// The results of a job as text, to the bit, for golden files
// (tests/actors/jobs/bits/golden_lines.h).
//
//   const JobBits bits = BitsOf(ReportsOf(spec));
//   bits.numbers;   // "4002626fefcdc214 ... model.safetensors 11269a23..."
//
// Doubles are written as the hexadecimal digits of their 64 bits.

#ifndef TESTS_ACTORS_JOBS_BITS_JOB_BITS_H_
#define TESTS_ACTORS_JOBS_BITS_JOB_BITS_H_

#include <string>

#include "pipeline/plan.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {

struct JobBits {
  // The loss of each step; then the name and the hash of each file of tensors
  // of the last checkpoint: parameters, buffers and optimizer states.
  std::string numbers;
  // The other reports of steps and evaluations, without times and memory:
  // "accuracy ... lr ... norm ... scale ... skipped ... evaluation 3 ...", with
  // a number for each step. Norms, scales and skips are left out if the job
  // neither clips nor scales.
  std::string reports;
  // The hash of PortablePlan().
  std::string plan;
};

// Reads the last checkpoint that was reported.
JobBits BitsOf(const Reports& reports);

// Returns the plan without the two fields that depend on the machine:
//   - `kernels` names the instruction set, the number of threads and the
//     versions of libraries;
//   - `algorithms` holds the choices of libraries, some of which are measured.
// The other fields follow from the spec, provided that it sets
// PlanOptions::inline_bytes. A job that measures `inline_bytes` has other
// tables on a machine with more cores.
pipeline::Plan PortablePlan(const pipeline::Plan& plan);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_JOBS_BITS_JOB_BITS_H_

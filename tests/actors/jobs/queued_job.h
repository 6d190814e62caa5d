// LeNet on queued devices (nn/kernels/queued) in the simulator, where a seed
// chooses an order of work that events permit; and the same job on the CPU.
//
//   const JobSpec spec = LeNetJob(/*dp=*/2, /*pp=*/1);
//   EXPECT_TRUE(OnQueuedDevices(spec, /*seed=*/7) == OnTheCpu(spec));

#ifndef TESTS_ACTORS_JOBS_QUEUED_JOB_H_
#define TESTS_ACTORS_JOBS_QUEUED_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "actors/spec/job_spec.h"
#include "comm/communicator.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {

inline constexpr std::int64_t kQueuedSteps = 3;

// Returns LeNet with momentum, and an evaluation at the end.
JobSpec LeNetJob(int dp, int pp);

struct Outcome {
  absl::Status status;
  Reports reports;

  // Returns whether the outcomes are bitwise equal.
  bool operator==(const Outcome& other) const;
};

// Wraps each communicator of a job.
using Wrap = std::function<std::unique_ptr<comm::Communicator>(
    std::unique_ptr<comm::Communicator> comm)>;

Outcome OnQueuedDevices(JobSpec spec, std::uint64_t seed,
                        const Wrap& wrap = nullptr);
Outcome OnTheCpu(const JobSpec& spec);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_JOBS_QUEUED_JOB_H_

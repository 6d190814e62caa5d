// Jobs on emulated GPUs, for tests: LeNet, and checks that hold in every order
// of work that streams and events permit.
//
//   JobSpec spec = EmulatedLeNetJob("cuda", /*dp=*/2, /*pp=*/1);
//   ExpectTheSameBitsInEveryOrder(spec, Seeds(40));
//   EmulatedOutcome outcome = SimulatedOnGpus(spec, /*seed=*/3);
//   EXPECT_EQ(outcome.order, "tree");
//
// The test links nn/kernels/cuda:register_emulated, and comm/nccl's if ranks
// reduce by NCCL.

#ifndef TESTS_ACTORS_EMULATED_JOB_H_
#define TESTS_ACTORS_EMULATED_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "actors/job.h"
#include "base/cuda/emulated/emulated_cuda.h"
#include "comm/local/local_group.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {

inline constexpr std::int64_t kEmulatedSteps = 3;

// Returns LeNet with momentum, global batches of 4, and an evaluation at the
// end.
JobSpec EmulatedLeNetJob(const std::string& device, int dp, int pp,
                         std::int64_t steps = kEmulatedSteps);

// Returns the options of `gpus` GPUs, for a job that runs in one thread.
emulated_cuda::Options EmulatedGpus(std::uint64_t seed, int gpus);

struct EmulatedOutcome {
  absl::Status status;
  Reports reports;
  std::string order;  // the plan's reduction_order

  std::vector<double> losses() const { return reports.losses(); }
  double evaluation() const {
    return reports.evaluations.empty() ? -1 : reports.evaluations.back().loss;
  }
  // Returns whether statuses, losses and evaluations are bitwise equal.
  bool operator==(const EmulatedOutcome& other) const {
    return status == other.status && losses() == other.losses() &&
           evaluation() == other.evaluation();
  }
};

// Runs the job in one thread, so that the seed determines the order of work.
// With `make_group`, which plants a bug, does not check that the devices end
// without errors or leaks.
EmulatedOutcome SimulatedOnGpus(const JobSpec& spec, std::uint64_t seed,
                                comm::GroupFactory make_group = nullptr);

// Expects the CPU's numbers within 1e-5, and the same bits for each of `seeds`.
void ExpectTheSameBitsInEveryOrder(const JobSpec& spec,
                                   const std::vector<std::uint64_t>& seeds);

// Expects a job on its own threads to have the bits of the simulation.
void ExpectTheSameBitsOnThreads(const JobSpec& spec,
                                const std::vector<std::uint64_t>& seeds);

// Expects a job that stops and resumes from its checkpoint under another seed
// to end like one that does not stop.
void ExpectCheckpointsToTravel(const std::vector<std::uint64_t>& seeds);

// Expects the losses and evaluations of the same job on the CPU within 1e-5.
void ExpectTheNumbersOfTheCpu(const Reports& got, JobSpec spec);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_EMULATED_JOB_H_

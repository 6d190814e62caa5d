// Simulated jobs that fail after a step whose checkpoint is due, and what was
// lost by that.
//
//   EXPECT_EQ(LostByAFailingStep(/*seed=*/17), "") << ReplayCommand(17);
//
// Each saves and evaluates every second step, on four ranks: two stages of two
// replicas. Files are written below FreshFolder().

#ifndef TESTS_ACTORS_SIM_LOST_WORK_H_
#define TESTS_ACTORS_SIM_LOST_WORK_H_

#include <cstdint>
#include <string>

namespace troupe::actors {

// Step 3 fails, in the loss of one rank: the checkpoint of step 2 must exist
// and be whole. Returns what is wrong; empty: nothing.
std::string LostByAFailingStep(std::uint64_t seed);

// The evaluation after step 2 fails, in a job that keeps its best checkpoint.
// The checkpoint of step 2 must exist, and a run that goes on from it, with
// another test set, must make up for the evaluation and end with the bits of a
// run that never failed.
std::string LostByAFailingEvaluation(std::uint64_t seed);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_SIM_LOST_WORK_H_

// Checks the result of a simulated cluster.
//
//   const ClusterScenario scenario = DrawScenario(seed);
//   const ClusterRun run = SimulateCluster(scenario, seed);
//   EXPECT_EQ(Judge(scenario, run), "") << ToString(scenario);
//
// Judge() checks of every run that each process that lives has reported one
// result of the job, within the time-outs; that all these results are the same,
// except for processes that cannot get it; that an error names the node that
// was struck; that a fault shorter than the time-outs changes nothing; that no
// actor is left behind; and that each folder with a checkpoint's name can be
// read.

#ifndef TESTS_ACTORS_CLUSTER_CLUSTER_JUDGE_H_
#define TESTS_ACTORS_CLUSTER_CLUSTER_JUDGE_H_

#include <string>

#include "tests/actors/cluster/cluster_scenario.h"

namespace troupe::actors {

// Returns what is wrong; empty: nothing.
std::string Judge(const ClusterScenario& scenario, const ClusterRun& run);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_CLUSTER_JUDGE_H_

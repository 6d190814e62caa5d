// What must come of a simulated cluster.
//
//   const ClusterScenario scenario = DrawScenario(seed);
//   const ClusterRun run = SimulateCluster(scenario, seed);
//   EXPECT_EQ(Judge(scenario, run), "") << ToString(scenario);
//
// Judge() asks, of every run: that each process that lives has said how the job
// ended, once, within the time-outs; that all of them say the same, but for
// those that cannot know; that an error names the node that was struck; that a
// fault that time-outs allow for changes nothing; that no actor is left behind;
// and that what has a checkpoint's name can be read.

#ifndef TESTS_ACTORS_CLUSTER_CLUSTER_JUDGE_H_
#define TESTS_ACTORS_CLUSTER_CLUSTER_JUDGE_H_

#include <string>

#include "tests/actors/cluster/cluster_scenario.h"

namespace troupe::actors {

// What is wrong; empty: nothing.
std::string Judge(const ClusterScenario& scenario, const ClusterRun& run);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_CLUSTER_JUDGE_H_

// Draws a scenario for a simulated cluster from a seed (cluster_judge.h checks
// its result).
//
//   const ClusterScenario scenario = DrawScenario(seed);
//   const ClusterRun run = SimulateCluster(scenario, seed);
//   for (const std::string& what : Situations(scenario, run)) ++counts[what];

#ifndef TESTS_ACTORS_CLUSTER_CLUSTER_SCENARIO_H_
#define TESTS_ACTORS_CLUSTER_CLUSTER_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/actors/cluster/simulated_cluster.h"

namespace troupe::actors {

// Draws a scenario. The environment variable TROUPE_SIM_PLAN replaces the plan
// of faults.
ClusterScenario DrawScenario(std::uint64_t seed,
                             const std::string& checkpoint_dir = "");

std::string ToString(const ClusterScenario& scenario);

// Whether the fault strikes process 0, or a link to it.
bool IsOfMaster(const Fault& fault);
// Whether the job cannot survive it.
bool IsSevere(const ClusterScenario& scenario, const Fault& fault);

// Returns the situations that a run has reached, for statistics: "death while
// training: ended".
std::vector<std::string> Situations(const ClusterScenario& scenario,
                                    const ClusterRun& run);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_CLUSTER_SCENARIO_H_

// The environment variables that launchers set for the processes that they
// start, and the placements that result.
//
//   Check({{"a task", kSlurmSets, {},
//           "Slurm: 1/2 local 0/1 node 1/2 at n1:7"}});

#ifndef TESTS_ACTORS_LAUNCHERS_LAUNCHER_ENVIRONMENTS_H_
#define TESTS_ACTORS_LAUNCHERS_LAUNCHER_ENVIRONMENTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/launchers/launchers.h"
#include "actors/launchers/variables.h"
#include "gtest/gtest.h"

namespace troupe::actors {

using Values = std::map<std::string, std::string>;

// Returns `values` overridden by `more`; an empty value removes one.
inline Values With(Values values, const Values& more) {
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

// Returns all fields of a Placement in one line.
inline std::string Show(const Placement& placement) {
  std::string text = absl::StrCat(
      placement.found_by, ": ", placement.process, "/", placement.processes,
      " local ", placement.local_process, "/", placement.local_processes,
      " node ", placement.node, "/", placement.nodes);
  if (placement.meeting == Meeting::kNone) return text;
  absl::StrAppend(&text, " at ", placement.master.ToString());
  if (placement.meeting == Meeting::kTorchrunStore) {
    absl::StrAppend(&text, " store ", placement.store_key);
  }
  return text;
}

inline std::string Find(const Values& environment, const Values& options = {}) {
  const absl::StatusOr<Placement> placement =
      FindPlacement(Variables(environment), Variables(options));
  return placement.ok() ? Show(*placement)
                        : std::string(placement.status().message());
}

inline const Values kTorchrunSets = {{"RANK", "1"},
                                     {"LOCAL_RANK", "1"},
                                     {"WORLD_SIZE", "2"},
                                     {"LOCAL_WORLD_SIZE", "2"},
                                     {"GROUP_RANK", "0"},
                                     {"GROUP_WORLD_SIZE", "1"},
                                     {"MASTER_ADDR", "n1"},
                                     {"MASTER_PORT", "29500"},
                                     {"TORCHELASTIC_RUN_ID", "none"},
                                     {"TORCHELASTIC_RESTART_COUNT", "0"},
                                     {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
inline const Values kOpenMpiSets = {
    {"OMPI_COMM_WORLD_RANK", "2"},       {"OMPI_COMM_WORLD_SIZE", "3"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
    {"OMPI_COMM_WORLD_NODE_RANK", "2"},  {"PMIX_NAMESPACE", "1683030017"}};
inline const Values kSlurmSets = {{"SLURM_JOB_ID", "7"},
                                  {"SLURM_STEP_ID", "0"},
                                  {"SLURM_PROCID", "1"},
                                  {"SLURM_NTASKS", "2"},
                                  {"SLURM_NODEID", "1"},
                                  {"SLURM_NNODES", "2"},
                                  {"SLURM_LOCALID", "0"},
                                  {"SLURM_STEP_NODELIST", "127.0.0.[1-2]"},
                                  {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                  {"SLURMD_NODENAME", "127.0.0.2"}};
inline const Values kIndexedJob = {{"JOB_COMPLETION_INDEX", "1"},
                                   {"HOSTNAME", "glyphs-1"}};
inline const Values kPyTorchJob = {{"RANK", "1"},
                                   {"WORLD_SIZE", "4"},
                                   {"MASTER_ADDR", "glyphs-master-0"},
                                   {"MASTER_PORT", "23456"},
                                   {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}};
inline const Values kPet = {{"PET_NODE_RANK", "1"},
                            {"PET_NNODES", "2"},
                            {"PET_NPROC_PER_NODE", "1"},
                            {"PET_MASTER_ADDR", "glyphs-node-0-0.glyphs"},
                            {"PET_MASTER_PORT", "29400"}};
inline const Values kOwn = {
    {"TROUPE_PROCESS", "3"},       {"TROUPE_PROCESSES", "4"},
    {"TROUPE_LOCAL_PROCESS", "1"}, {"TROUPE_LOCAL_PROCESSES", "2"},
    {"TROUPE_NODE", "1"},          {"TROUPE_NODES", "2"},
    {"TROUPE_MASTER", "n1:29400"}};

struct Case {
  const char* what;
  Values environment;
  Values options;
  std::string found;
};

inline void Check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(Find(c.environment, c.options), c.found) << c.what;
  }
}

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_LAUNCHERS_LAUNCHER_ENVIRONMENTS_H_

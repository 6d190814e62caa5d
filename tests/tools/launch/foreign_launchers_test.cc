#include "tools/trainer/launch/foreign_launchers.h"

#include "gtest/gtest.h"
#include "tests/tools/launch/launcher_environments.h"

namespace troupe::tools {
namespace {

TEST(ForeignLaunchersTest, Torchrun) {
  Check({
      {"all is said",
       kTorchrunSets,
       {},
       "torchrun: 1/2 local 1/2 node 0/1 at n1:29500 store "
       "troupe/none/0/address"},
      {"started again",
       With(kTorchrunSets, {{"TORCHELASTIC_RESTART_COUNT", "2"}}),
       {},
       "torchrun: 1/2 local 1/2 node 0/1 at n1:29500 store "
       "troupe/none/2/address"},
      {"its store is not there",
       With(kTorchrunSets, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}),
       {},
       "torchrun: 1/2 local 1/2 node 0/1 at n1:29500"},
      {"another address than the store's",
       kTorchrunSets,
       {{"--master", "n1:7"}},
       "torchrun: 1/2 local 1/2 node 0/1 at n1:7"},
      {"under srun",
       With(kSlurmSets, kTorchrunSets),
       {},
       "torchrun: 1/2 local 1/2 node 0/1 at n1:29500 store "
       "troupe/none/0/address"},
      {"one is missing",
       With(kTorchrunSets, {{"WORLD_SIZE", ""}}),
       {},
       "launched by torchrun: RANK=1 is set and WORLD_SIZE is not; set both, "
       "or none"},
      {"too high",
       With(kTorchrunSets, {{"RANK", "2"}}),
       {},
       "launched by torchrun: RANK=2 contradicts WORLD_SIZE=2: numbers begin "
       "with 0"},
      {"more here than in all",
       With(kTorchrunSets, {{"LOCAL_WORLD_SIZE", "3"}}),
       {},
       "launched by torchrun: LOCAL_WORLD_SIZE=3 contradicts 2 processes in "
       "all"},
      {"an option says something else",
       kTorchrunSets,
       {{"--processes", "3"}},
       "--processes=3 contradicts WORLD_SIZE=2; take one of them away"},
      {"a port that is none",
       With(kTorchrunSets, {{"MASTER_PORT", "http"}}),
       {},
       "launched by torchrun: MASTER_ADDR=n1 and MASTER_PORT=http: "
       "\"n1:http\" is no address; write host:port, such as n1:29400 or "
       "[fd00::7]:29400, with a port from 1 to 65535"},
  });
}

// With nested launchers, only processes that mpirun itself starts have MPI.
TEST(ForeignLaunchersTest, MpirunsOwnProcessesHaveMpi) {
  const auto has_mpi = [](const Values& environment) {
    const absl::StatusOr<Placement> placement =
        FindPlacement(Variables(environment), Variables());
    return placement.ok() && placement->by_mpirun;
  };
  EXPECT_TRUE(has_mpi(kOpenMpiSets));
  EXPECT_TRUE(has_mpi(With(kSlurmSets, kOpenMpiSets)));
  EXPECT_FALSE(has_mpi(With(kOpenMpiSets, kTorchrunSets)));
  EXPECT_FALSE(has_mpi(kSlurmSets));
}

TEST(ForeignLaunchersTest, OpenMpi) {
  const Values two_hosts =
      With(kOpenMpiSets, {{"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  Check({
      {"one host",
       kOpenMpiSets,
       {},
       "Open MPI: 2/3 local 2/3 node 0/1 at 127.0.0.1:23678"},
      {"inside of Slurm",
       With(kSlurmSets, kOpenMpiSets),
       {},
       "Open MPI: 2/3 local 2/3 node 0/1 at 127.0.0.1:23678"},
      {"several hosts",
       two_hosts,
       {{"--master", "n1:29400"}},
       "Open MPI: 2/3 local 0/1 node -1/-1 at n1:29400"},
      {"several hosts, no address",
       two_hosts,
       {},
       "3 processes, and no address where they meet; Open MPI names no "
       "address: add --master=host:port with the host of process 0, the first "
       "that mpirun lists, and a free port there"},
      {"one is missing",
       With(kOpenMpiSets, {{"OMPI_COMM_WORLD_RANK", ""}}),
       {},
       "launched by Open MPI: OMPI_COMM_WORLD_SIZE=3 is set and "
       "OMPI_COMM_WORLD_RANK is not; set both, or none"},
  });
}

TEST(ForeignLaunchersTest, Slurm) {
  Check({
      {"a task",
       kSlurmSets,
       {},
       "Slurm: 1/2 local 0/1 node 1/2 at 127.0.0.1:28808"},
      {"another step, another port",
       With(kSlurmSets, {{"SLURM_STEP_ID", "1"}}),
       {},
       "Slurm: 1/2 local 0/1 node 1/2 at 127.0.0.1:27019"},
      {"with ports",
       With(kSlurmSets, {{"SLURM_STEP_RESV_PORTS", "17003-17004"}}),
       {},
       "Slurm: 1/2 local 0/1 node 1/2 at 127.0.0.1:17003"},
      {"an address of one's own",
       kSlurmSets,
       {{"--master", "n1:7"}},
       "Slurm: 1/2 local 0/1 node 1/2 at n1:7"},
      {"fewer tasks than the job has",
       With(kSlurmSets, {{"SLURM_STEP_NUM_TASKS", "3"},
                         {"SLURM_STEP_NUM_NODES", "2"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_STEP_TASKS_PER_NODE", "1,2"},
                         {"SLURM_NTASKS", "8"},
                         {"SLURM_NNODES", "4"}}),
       {},
       "Slurm: 1/3 local 1/2 node 1/2 at 127.0.0.1:28808"},
      {"a batch script",
       {{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}},
       {},
       ": 0/1 local 0/1 node 0/1"},
      {"an interactive shell",
       With(kSlurmSets, {{"SLURM_STEP_ID", "4294967290"}}),
       {},
       ": 0/1 local 0/1 node 0/1"},
      {"not as many on the node",
       With(kSlurmSets, {{"SLURM_LOCALID", "1"}}),
       {},
       "launched by Slurm: SLURM_LOCALID=1 contradicts "
       "SLURM_STEP_TASKS_PER_NODE=1(x2) and SLURM_NODEID=1"},
      {"no such list",
       With(kSlurmSets, {{"SLURM_STEP_NODELIST", "n["}}),
       {},
       "launched by Slurm: \"n[\" is no list of Slurm's hosts"},
      {"one is missing",
       With(kSlurmSets, {{"SLURM_LOCALID", ""}}),
       {},
       "launched by Slurm: SLURM_LOCALID is not set"},
  });
}

TEST(ForeignLaunchersTest, Kubernetes) {
  Check({
      {"an indexed job",
       With(kIndexedJob, {{"TROUPE_PROCESSES", "2"},
                          {"TROUPE_MASTER", "glyphs-0.glyphs:29400"}}),
       {},
       "an indexed job of Kubernetes: 1/2 local 0/1 node 1/2 at "
       "glyphs-0.glyphs:29400"},
      {"each pod by itself",
       With(kIndexedJob, {{"JOB_COMPLETION_INDEX", "0"}}),
       {{"--processes", "1"}},
       "an indexed job of Kubernetes: 0/1 local 0/1 node 0/1"},
      {"not how many",
       kIndexedJob,
       {},
       "JOB_COMPLETION_INDEX=1 is set, but not how many processes there are; "
       "set TROUPE_PROCESSES or add --processes=N (1: each process trains by "
       "itself)"},
      {"no address",
       kIndexedJob,
       {{"--processes", "2"}},
       "2 processes, and no address where they meet; set TROUPE_MASTER to the "
       "name of pod 0 and a port, such as glyphs-0.SERVICE:29400, with the "
       "name of the job's headless service"},
      {"more pods than that",
       With(kIndexedJob, {{"TROUPE_PROCESSES", "1"}}),
       {},
       "JOB_COMPLETION_INDEX=1 contradicts TROUPE_PROCESSES=1: numbers begin "
       "with 0"},
      {"a PyTorchJob",
       kPyTorchJob,
       {},
       "a PyTorchJob of Kubernetes: 1/4 local 0/1 node 1/4 at "
       "glyphs-master-0:23456"},
      {"a PyTorchJob that counts its processes otherwise",
       With(kPyTorchJob, kPet),
       {},
       "a training job of Kubernetes: 1/2 local 0/1 node 1/2 at "
       "glyphs-node-0-0.glyphs:29400"},
      {"a training job",
       kPet,
       {},
       "a training job of Kubernetes: 1/2 local 0/1 node 1/2 at "
       "glyphs-node-0-0.glyphs:29400"},
      {"with torchrun in it",
       With(kPet, kTorchrunSets),
       {},
       "torchrun: 1/2 local 1/2 node 0/1 at n1:29500 store "
       "troupe/none/0/address"},
      {"an address of one's own",
       kPyTorchJob,
       {{"--master", "n1:7"}},
       "--master=n1:7 contradicts MASTER_ADDR=glyphs-master-0 and "
       "MASTER_PORT=23456; take one of them away"},
      {"half an address",
       With(kPyTorchJob, {{"MASTER_PORT", ""}}),
       {},
       "launched by a PyTorchJob of Kubernetes: MASTER_ADDR=glyphs-master-0 "
       "and "
       "MASTER_PORT=: \"glyphs-master-0:\" is no address; write host:port, "
       "such "
       "as n1:29400 or [fd00::7]:29400, with a port from 1 to 65535"},
  });
}

TEST(ForeignLaunchersTest, VariablesSetByHand) {
  Check({
      {"as PyTorch has them",
       With(kPyTorchJob, {{"KUBERNETES_SERVICE_HOST", ""}}),
       {},
       "whoever set RANK: 1/4 local 0/1 node 1/4 at glyphs-master-0:23456"},
      {"with those of the node",
       With(kPyTorchJob, {{"KUBERNETES_SERVICE_HOST", ""},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "2"}}),
       {},
       "whoever set RANK: 1/4 local 1/2 node -1/-1 at glyphs-master-0:23456"},
      {"no address",
       {{"RANK", "1"}, {"WORLD_SIZE", "2"}},
       {},
       "2 processes, and no address where they meet; set MASTER_ADDR and "
       "MASTER_PORT, or add --master=host:port"},
  });
}

}  // namespace
}  // namespace troupe::tools

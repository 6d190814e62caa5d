#include "actors/launchers/foreign_launchers.h"

#include "gtest/gtest.h"
#include "tests/actors/launchers/launcher_environments.h"

namespace troupe::actors {
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
       "launched by torchrun: RANK=2 must be below WORLD_SIZE=2, since "
       "numbers begin with 0"},
      {"more here than in all",
       With(kTorchrunSets, {{"LOCAL_WORLD_SIZE", "3"}}),
       {},
       "launched by torchrun: LOCAL_WORLD_SIZE=3 must be at most the 2 "
       "processes in "
       "all"},
      {"an option says something else",
       kTorchrunSets,
       {{"--processes", "3"}},
       "--processes=3 contradicts WORLD_SIZE=2; remove one of the two"},
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
       "SLURM_STEP_TASKS_PER_NODE=1(x2) and SLURM_NODEID=1; start the run by "
       "srun, which sets them"},
      {"no such list",
       With(kSlurmSets, {{"SLURM_STEP_NODELIST", "n["}}),
       {},
       "launched by Slurm: \"n[\" is no list of Slurm's hosts; write it "
       "as n[01-04,9],m3"},
      {"one is missing",
       With(kSlurmSets, {{"SLURM_LOCALID", ""}}),
       {},
       "launched by Slurm: SLURM_LOCALID is not set; set it, or unset the "
       "launcher's other variables"},
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
       "JOB_COMPLETION_INDEX=1 must be below TROUPE_PROCESSES=1, since numbers "
       "begin "
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
       "MASTER_PORT=23456; remove one of the two"},
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
       "RANK and WORLD_SIZE: 1/4 local 0/1 node 1/4 at glyphs-master-0:23456"},
      {"with those of the node",
       With(kPyTorchJob, {{"KUBERNETES_SERVICE_HOST", ""},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "2"}}),
       {},
       "RANK and WORLD_SIZE: 1/4 local 1/2 node -1/-1 at "
       "glyphs-master-0:23456"},
      {"no address",
       {{"RANK", "1"}, {"WORLD_SIZE", "2"}},
       {},
       "2 processes, and no address where they meet; set MASTER_ADDR and "
       "MASTER_PORT, or add --master=host:port"},
  });
}

TEST(ForeignLaunchersTest, IPv6AddressesStandInBracketsOrNot) {
  for (const char* host : {"::1", "[::1]"}) {
    EXPECT_EQ(Find({{"RANK", "1"},
                    {"WORLD_SIZE", "2"},
                    {"MASTER_ADDR", host},
                    {"MASTER_PORT", "29400"}}),
              "RANK and WORLD_SIZE: 1/2 local 0/1 node 1/2 at [::1]:29400");
  }
  for (const char* host : {"fd00::7", "[fd00::7]"}) {
    EXPECT_EQ(Find(With(kPet, {{"PET_MASTER_ADDR", host}})),
              "a training job of Kubernetes: 1/2 local 0/1 node 1/2 at "
              "[fd00::7]:29400");
  }
  EXPECT_EQ(Find(With(kTorchrunSets, {{"MASTER_ADDR", "[::1"}})),
            "launched by torchrun: MASTER_ADDR=[::1 and MASTER_PORT=29500: "
            "\"[::1:29500\" is no address; write host:port, such as n1:29400 "
            "or [fd00::7]:29400, with a port from 1 to 65535");
}

// Launchers of MPI and others that number processes and name no address.
TEST(ForeignLaunchersTest, LaunchersThatOnlyNumberProcesses) {
  const Values master = {{"--master", "n1:7"}};
  Check({
      {"MPICH, one host",
       {{"PMI_RANK", "1"},
        {"PMI_SIZE", "2"},
        {"MPI_LOCALRANKID", "1"},
        {"MPI_LOCALNRANKS", "2"}},
       master,
       "MPICH or Intel MPI: 1/2 local 1/2 node -1/-1 at n1:7"},
      {"MPICH, nothing of the host",
       {{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}},
       master,
       "MPICH or Intel MPI: 0/4 local 0/1 node 0/4 at n1:7"},
      {"one process",
       {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}},
       {},
       "MPICH or Intel MPI: 0/1 local 0/1 node 0/1"},
      {"no address",
       {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}},
       {},
       "2 processes, and no address where they meet; MPICH or Intel MPI, which "
       "set PMI_RANK=1, names no address: add --master=host:port with the host "
       "of process 0 and a free port there"},
      {"half",
       {{"PMI_SIZE", "2"}},
       {},
       "launched by MPICH or Intel MPI: PMI_SIZE=2 is set and PMI_RANK is not; "
       "set both, or none"},
      {"MVAPICH2, which sets MPICH's, too",
       {{"MV2_COMM_WORLD_RANK", "3"},
        {"MV2_COMM_WORLD_SIZE", "4"},
        {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
        {"MV2_COMM_WORLD_LOCAL_SIZE", "2"},
        {"PMI_RANK", "3"},
        {"PMI_SIZE", "4"}},
       master,
       "MVAPICH2: 3/4 local 1/2 node -1/-1 at n1:7"},
      {"Flux",
       {{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "2"}, {"PMI_RANK", "1"}},
       master,
       "Flux: 1/2 local 0/1 node 1/2 at n1:7"},
      {"jsrun, half",
       {{"JSM_NAMESPACE_RANK", "1"}},
       {},
       "launched by jsrun: JSM_NAMESPACE_RANK=1 is set and JSM_NAMESPACE_SIZE "
       "is not; set both, or none"},
      {"horovodrun",
       {{"HOROVOD_RANK", "2"}, {"HOROVOD_SIZE", "2"}},
       {},
       "launched by horovodrun: HOROVOD_RANK=2 must be below HOROVOD_SIZE=2, "
       "since numbers begin with 0"},
      {"PMIx, not how many",
       {{"PMIX_RANK", "1"}},
       {},
       "PMIX_RANK=1 is set, but not how many processes there are; set "
       "TROUPE_PROCESSES or add --processes=N (1: each process trains by "
       "itself)"},
      {"PMIx, how many",
       {{"PMIX_RANK", "1"}},
       {{"--processes", "2"}, {"--master", "n1:7"}},
       "PMIx: 1/2 local 0/1 node 1/2 at n1:7"},
      {"aprun",
       {{"ALPS_APP_PE", "one"}},
       {},
       "launched by aprun: ALPS_APP_PE=one: must be a whole number from 0 to "
       "1000000"},
      {"below Slurm, which knows more",
       With(kSlurmSets, {{"PMI_RANK", "1"}, {"PMIX_RANK", "1"}}),
       {},
       "Slurm: 1/2 local 0/1 node 1/2 at 127.0.0.1:28808"},
      {"below Open MPI",
       With(kOpenMpiSets, {{"PMIX_RANK", "2"}}),
       {},
       "Open MPI: 2/3 local 2/3 node 0/1 at 127.0.0.1:23678"},
  });
}

TEST(ForeignLaunchersTest, HalfALauncher) {
  const auto half = [](const std::string& set, const std::string& missing,
                       const std::string& name) {
    return set + " is set and " + missing +
           " is not: each process would train alone; set both, or unset " +
           name;
  };
  const std::string alone = ": 0/1 local 0/1 node 0/1";
  Check({
      {"only how many",
       {{"WORLD_SIZE", "2"}},
       {},
       half("WORLD_SIZE=2", "RANK", "WORLD_SIZE")},
      {"an empty one",
       {{"RANK", ""}, {"WORLD_SIZE", "8"}},
       {},
       half("WORLD_SIZE=8", "RANK", "WORLD_SIZE")},
      {"only which", {{"RANK", "0"}}, {}, half("RANK=0", "WORLD_SIZE", "RANK")},
      {"of the node alone",
       {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}},
       {},
       half("LOCAL_WORLD_SIZE=2", "RANK", "LOCAL_WORLD_SIZE")},
      {"torchrun without its numbers",
       With(kTorchrunSets, {{"RANK", ""}}),
       {},
       half("WORLD_SIZE=2", "RANK", "WORLD_SIZE")},
      {"a training job",
       {{"PET_NNODES", "2"}},
       {},
       half("PET_NNODES=2", "PET_NODE_RANK", "PET_NNODES")},
      {"an elastic one",
       {{"PET_NNODES", "1:3"}},
       {},
       half("PET_NNODES=1:3", "PET_NODE_RANK", "PET_NNODES")},
      {"a node of a training job",
       {{"PET_NODE_RANK", "0"}},
       {},
       half("PET_NODE_RANK=0", "PET_NNODES", "PET_NODE_RANK")},
      {"a step of Slurm",
       With(kSlurmSets, {{"SLURM_STEP_NODELIST", ""}}),
       {},
       half("SLURM_STEP_ID=0", "SLURM_STEP_NODELIST", "SLURM_STEP_ID")},
      {"a task of Slurm",
       With(kSlurmSets, {{"SLURM_PROCID", ""}}),
       {},
       half("SLURM_STEP_ID=0", "SLURM_PROCID", "SLURM_STEP_ID")},
      {"one of one", {{"WORLD_SIZE", "1"}}, {}, alone},
      {"another program's", {{"RANK", "gold"}, {"LOCAL_RANK", ""}}, {}, alone},
      {"options say all",
       {{"WORLD_SIZE", "2"}},
       {{"--process", "0"}, {"--processes", "1"}},
       "hand: 0/1 local 0/1 node 0/1"},
      {"a launcher that is whole beside it",
       With(kOpenMpiSets, {{"WORLD_SIZE", "5"}}),
       {},
       "Open MPI: 2/3 local 2/3 node 0/1 at 127.0.0.1:23678"},
  });
}

}  // namespace
}  // namespace troupe::actors

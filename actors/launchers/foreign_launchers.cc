#include "actors/launchers/foreign_launchers.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "actors/launchers/half_launched.h"
#include "actors/launchers/slurm_lists.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/fnv_hash.h"

namespace troupe::actors {
namespace {

using Read = absl::StatusOr<ForeignPlacement> (*)(const Variables&);

struct Launcher {
  const char* name;
  bool (*started_us)(const Variables&);
  Read read;
};

struct Position {
  int index = 0;
  int count = 1;
};

// Reads a position: variable `index_name`, in [0, `count_name`).
absl::StatusOr<Position> ReadPosition(const Variables& environment,
                                      const std::string& index_name,
                                      const std::string& count_name) {
  Position position;
  for (const auto& [set, unset] :
       {std::pair(index_name, count_name), std::pair(count_name, index_name)}) {
    if (!environment.Has(set) || environment.Has(unset)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(environment.Show(set), " is set and ", unset,
                     " is not; set both, or none"));
  }
  TROUPE_ASSIGN_OR_RETURN(position.index, environment.Number(index_name));
  TROUPE_ASSIGN_OR_RETURN(position.count, environment.Number(count_name));
  if (position.index < position.count) return position;
  return absl::InvalidArgumentError(absl::StrCat(
      environment.Show(index_name), " must be below ",
      environment.Show(count_name), ", since numbers begin with 0"));
}

absl::Status ReadProcess(const Variables& environment,
                         const std::string& index_name,
                         const std::string& count_name,
                         ForeignPlacement& found) {
  TROUPE_ASSIGN_OR_RETURN(const Position position,
                          ReadPosition(environment, index_name, count_name));
  found.placement.process = position.index;
  found.placement.processes = position.count;
  found.process_from = environment.Show(index_name);
  found.processes_from = environment.Show(count_name);
  return absl::OkStatus();
}

absl::Status ReadLocal(const Variables& environment,
                       const std::string& index_name,
                       const std::string& count_name, Placement& placement) {
  TROUPE_ASSIGN_OR_RETURN(const Position position,
                          ReadPosition(environment, index_name, count_name));
  placement.local_process = position.index;
  placement.local_processes = position.count;
  if (position.count <= placement.processes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(environment.Show(count_name), " must be at most the ",
                   placement.processes, " processes in all"));
}

// Places each process on its own node, if the launcher knows nothing else.
void OnNodesOfTheirOwn(Placement& placement) {
  placement.node = placement.process;
  placement.nodes = placement.processes;
}

// Reads PyTorch's two variables of the master.
absl::Status ReadMaster(const Variables& environment,
                        const std::string& host_name,
                        const std::string& port_name, ForeignPlacement& found) {
  if (!environment.Has(host_name) && !environment.Has(port_name)) {
    found.no_master = absl::StrCat("set ", host_name, " and ", port_name,
                                   ", or add --master=host:port");
    return absl::OkStatus();
  }
  found.master_from = absl::StrCat(environment.Show(host_name), " and ",
                                   environment.Show(port_name));
  const std::string host = environment.Text(host_name);
  // An IPv6 address stands in brackets or not.
  const bool bare = absl::StrContains(host, ':') && host[0] != '[';
  const std::string text =
      bare ? absl::StrCat("[", host, "]:") : absl::StrCat(host, ":");
  const absl::StatusOr<base::HostPort> master =
      base::ParseHostPort(absl::StrCat(text, environment.Text(port_name)));
  if (!master.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(found.master_from, ": ", master.status().message()));
  }
  found.placement.meeting = Meeting::kAddress;
  found.placement.master = *master;
  return absl::OkStatus();
}

// Returns a port that all processes of a job derive from its id, below the
// range of ports that systems assign themselves.
int PortOf(absl::string_view job) {
  constexpr std::uint64_t kFirst = 20'000, kPorts = 10'000;
  base::FnvHash hash;
  hash.AddBytes(job.data(), job.size());
  return static_cast<int>(kFirst + hash.value() % kPorts);
}

bool FromTorchrun(const Variables& environment) {
  return environment.Has("TORCHELASTIC_RUN_ID") && environment.Has("RANK");
}

absl::StatusOr<ForeignPlacement> ReadTorchrun(const Variables& environment) {
  ForeignPlacement found;
  Placement& placement = found.placement;
  TROUPE_RETURN_IF_ERROR(ReadProcess(environment, "RANK", "WORLD_SIZE", found));
  TROUPE_RETURN_IF_ERROR(
      ReadLocal(environment, "LOCAL_RANK", "LOCAL_WORLD_SIZE", placement));
  TROUPE_ASSIGN_OR_RETURN(
      const Position node,
      ReadPosition(environment, "GROUP_RANK", "GROUP_WORLD_SIZE"));
  placement.node = node.index;
  placement.nodes = node.count;
  TROUPE_RETURN_IF_ERROR(
      ReadMaster(environment, "MASTER_ADDR", "MASTER_PORT", found));
  if (environment.Text("TORCHELASTIC_USE_AGENT_STORE") != "True") return found;
  found.master_from.clear();
  placement.meeting = Meeting::kTorchrunStore;
  // The restart count is part of the key, so that restarted processes do not
  // read the address of earlier ones.
  placement.store_key =
      absl::StrCat("troupe/", environment.Text("TORCHELASTIC_RUN_ID"), "/",
                   environment.Text("TORCHELASTIC_RESTART_COUNT"), "/address");
  return found;
}

bool FromOpenMpi(const Variables& environment) {
  return environment.Has("OMPI_COMM_WORLD_RANK") ||
         environment.Has("OMPI_COMM_WORLD_SIZE");
}

absl::StatusOr<ForeignPlacement> ReadOpenMpi(const Variables& environment) {
  ForeignPlacement found;
  Placement& placement = found.placement;
  TROUPE_RETURN_IF_ERROR(ReadProcess(environment, "OMPI_COMM_WORLD_RANK",
                                     "OMPI_COMM_WORLD_SIZE", found));
  placement.by_mpirun = true;
  TROUPE_RETURN_IF_ERROR(ReadLocal(environment, "OMPI_COMM_WORLD_LOCAL_RANK",
                                   "OMPI_COMM_WORLD_LOCAL_SIZE", placement));
  const std::string job = environment.Text("PMIX_NAMESPACE");
  if (placement.local_processes < placement.processes) {
    placement.node = placement.nodes = -1;
  } else if (!job.empty()) {
    placement.meeting = Meeting::kAddress;
    placement.master = {"127.0.0.1", PortOf(job)};
  }
  found.no_master =
      "Open MPI names no address: add --master=host:port with the host of "
      "process 0, the first that mpirun lists, and a free port there";
  return found;
}

// Whether this is a process of a job step. Batch scripts and interactive shells
// have SLURM_PROCID, too.
bool FromSlurm(const Variables& environment) {
  return environment.Has("SLURM_PROCID") &&
         environment.Has("SLURM_STEP_NODELIST") && !IsSlurmScript(environment);
}

absl::StatusOr<base::HostPort> MasterOfSlurm(const Variables& environment) {
  base::HostPort master;
  TROUPE_ASSIGN_OR_RETURN(master.host,
                          FirstHost(environment.Text("SLURM_STEP_NODELIST")));
  // Ports such as "17003-17004", if srun has --resv-ports.
  const std::pair<std::string, std::string> reserved = absl::StrSplit(
      environment.Text("SLURM_STEP_RESV_PORTS"), absl::MaxSplits('-', 1));
  if (absl::SimpleAtoi(reserved.first, &master.port) && master.port > 0) {
    return master;
  }
  master.port = PortOf(absl::StrCat(environment.Text("SLURM_JOB_ID"), ".",
                                    environment.Text("SLURM_STEP_ID")));
  return master;
}

absl::StatusOr<ForeignPlacement> ReadSlurm(const Variables& environment) {
  ForeignPlacement found;
  Placement& placement = found.placement;
  TROUPE_RETURN_IF_ERROR(ReadProcess(environment, "SLURM_PROCID",
                                     environment.Has("SLURM_STEP_NUM_TASKS")
                                         ? "SLURM_STEP_NUM_TASKS"
                                         : "SLURM_NTASKS",
                                     found));
  TROUPE_ASSIGN_OR_RETURN(const Position node,
                          ReadPosition(environment, "SLURM_NODEID",
                                       environment.Has("SLURM_STEP_NUM_NODES")
                                           ? "SLURM_STEP_NUM_NODES"
                                           : "SLURM_NNODES"));
  placement.node = node.index;
  placement.nodes = node.count;
  placement.node_name = environment.Text("SLURMD_NODENAME");
  TROUPE_ASSIGN_OR_RETURN(placement.local_process,
                          environment.Number("SLURM_LOCALID"));
  TROUPE_ASSIGN_OR_RETURN(
      placement.local_processes,
      TasksOnNode(environment.Text("SLURM_STEP_TASKS_PER_NODE"), node.index));
  if (placement.local_process >= placement.local_processes) {
    return absl::InvalidArgumentError(
        absl::StrCat(environment.Show("SLURM_LOCALID"), " contradicts ",
                     environment.Show("SLURM_STEP_TASKS_PER_NODE"), " and ",
                     environment.Show("SLURM_NODEID"),
                     "; start the run by srun, which sets them"));
  }
  placement.meeting = Meeting::kAddress;
  TROUPE_ASSIGN_OR_RETURN(placement.master, MasterOfSlurm(environment));
  return found;
}

// `torchrun` reads these variables itself and sets others. A program that is
// started without it is the only process of its node.
bool FromPetVariables(const Variables& environment) {
  return environment.Has("PET_NODE_RANK") && environment.Has("PET_NNODES");
}

absl::StatusOr<ForeignPlacement> ReadPetVariables(
    const Variables& environment) {
  ForeignPlacement found;
  TROUPE_RETURN_IF_ERROR(
      ReadProcess(environment, "PET_NODE_RANK", "PET_NNODES", found));
  OnNodesOfTheirOwn(found.placement);
  TROUPE_RETURN_IF_ERROR(
      ReadMaster(environment, "PET_MASTER_ADDR", "PET_MASTER_PORT", found));
  const std::string per_node = environment.Text("PET_NPROC_PER_NODE");
  if (!per_node.empty() && per_node != "1") {
    found.placement.hint = absl::StrCat(
        environment.Show("PET_NPROC_PER_NODE"),
        " is not read: this is one process on its node; start more with "
        "\"trainer launch --nproc-per-node=K -- train\"");
  }
  return found;
}

bool FromRankVariables(const Variables& environment) {
  return environment.Has("RANK") &&
         (environment.Has("WORLD_SIZE") || environment.Has("MASTER_ADDR"));
}

bool FromPyTorchJob(const Variables& environment) {
  return FromRankVariables(environment) &&
         environment.Has("KUBERNETES_SERVICE_HOST");
}

absl::StatusOr<ForeignPlacement> ReadRankVariables(
    const Variables& environment) {
  ForeignPlacement found;
  TROUPE_RETURN_IF_ERROR(ReadProcess(environment, "RANK", "WORLD_SIZE", found));
  OnNodesOfTheirOwn(found.placement);
  TROUPE_RETURN_IF_ERROR(
      ReadMaster(environment, "MASTER_ADDR", "MASTER_PORT", found));
  if (!environment.Has("LOCAL_RANK")) return found;
  found.placement.node = found.placement.nodes = -1;
  TROUPE_RETURN_IF_ERROR(ReadLocal(environment, "LOCAL_RANK",
                                   "LOCAL_WORLD_SIZE", found.placement));
  return found;
}

bool FromIndexedJob(const Variables& environment) {
  return environment.Has("JOB_COMPLETION_INDEX");
}

absl::StatusOr<ForeignPlacement> ReadIndexedJob(const Variables& environment) {
  ForeignPlacement found;
  TROUPE_ASSIGN_OR_RETURN(found.placement.process,
                          environment.Number("JOB_COMPLETION_INDEX"));
  found.process_from = environment.Show("JOB_COMPLETION_INDEX");
  // The pod's name is the name of the job and the index.
  const std::string pod = environment.Text("HOSTNAME");
  const std::string job = pod.substr(0, pod.rfind('-'));
  found.no_master = absl::StrCat("set ", kMasterVariable,
                                 " to the name of pod 0 and a port, such as ",
                                 job.empty() ? "train" : job,
                                 "-0.SERVICE:29400, with the name of the "
                                 "job's headless service");
  return found;
}

// The variables of a launcher that sets numbers of processes and no address.
struct Numbers {
  const char* launcher;
  const char* index;
  const char* count;        // null: the launcher does not set it
  const char* local_index;  // null: the launcher does not set both
  const char* local_count;
};

// Flux and MVAPICH2 also set MPICH's variables.
constexpr Numbers kNumbers[] = {
    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", nullptr, nullptr},
    {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE",
     "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE"},
    {"horovodrun", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK",
     "HOROVOD_LOCAL_SIZE"},
    {"MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
     "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH or Intel MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS"},
    {"Cray PALS", "PALS_RANKID", nullptr, nullptr, nullptr},
    {"aprun", "ALPS_APP_PE", nullptr, nullptr, nullptr},
    {"PMIx", "PMIX_RANK", nullptr, nullptr, nullptr},
};

absl::StatusOr<ForeignPlacement> ReadNumbers(const Variables& environment,
                                             const Numbers& numbers) {
  ForeignPlacement found;
  Placement& placement = found.placement;
  if (numbers.count == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(placement.process,
                            environment.Number(numbers.index));
    found.process_from = environment.Show(numbers.index);
  } else {
    TROUPE_RETURN_IF_ERROR(
        ReadProcess(environment, numbers.index, numbers.count, found));
  }
  OnNodesOfTheirOwn(placement);
  if (numbers.local_index != nullptr && environment.Has(numbers.local_index)) {
    placement.node = placement.nodes = -1;
    TROUPE_RETURN_IF_ERROR(ReadLocal(environment, numbers.local_index,
                                     numbers.local_count, placement));
  }
  found.no_master = absl::StrCat(
      numbers.launcher, ", which set ", found.process_from,
      ", names no address: add --master=host:port with the host of process 0 "
      "and a free port there");
  return found;
}

bool Started(const Variables& environment, const Numbers& numbers) {
  return environment.Has(numbers.index) ||
         (numbers.count != nullptr && environment.Has(numbers.count));
}

// Names the launcher in an error, or in the placement.
absl::StatusOr<std::optional<ForeignPlacement>> FoundBy(
    const char* launcher, absl::StatusOr<ForeignPlacement> found) {
  if (!found.ok()) {
    return base::WithMessage(
        found.status(),
        absl::StrCat("launched by ", launcher, ": ", found.status().message()));
  }
  found->placement.found_by = launcher;
  return *std::move(found);
}

// Launchers, the innermost first.
constexpr Launcher kLaunchers[] = {
    {kTorchrun, FromTorchrun, ReadTorchrun},
    {kOpenMpi, FromOpenMpi, ReadOpenMpi},
    {kSlurm, FromSlurm, ReadSlurm},
    {"a training job of Kubernetes", FromPetVariables, ReadPetVariables},
    {"a PyTorchJob of Kubernetes", FromPyTorchJob, ReadRankVariables},
    {"an indexed job of Kubernetes", FromIndexedJob, ReadIndexedJob},
    {"RANK and WORLD_SIZE", FromRankVariables, ReadRankVariables},
};

}  // namespace

absl::StatusOr<std::optional<ForeignPlacement>> FindForeignLauncher(
    const Variables& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.started_us(environment)) {
      return FoundBy(launcher.name, launcher.read(environment));
    }
  }
  for (const Numbers& numbers : kNumbers) {
    if (Started(environment, numbers)) {
      return FoundBy(numbers.launcher, ReadNumbers(environment, numbers));
    }
  }
  return std::nullopt;
}

}  // namespace troupe::actors

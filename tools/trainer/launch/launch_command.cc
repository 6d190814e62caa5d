#include "tools/trainer/launch/launch_command.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "actors/launchers/launchers.h"
#include "actors/launchers/local_launch.h"
#include "actors/launchers/variables.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/files/file_system.h"
#include "base/host_port.h"
#include "base/processes/reserved_port.h"
#include "base/tls/certificate_check.h"
#include "tools/trainer/launch/core_shares.h"
#include "tools/trainer/launch/find_program.h"
#include "tools/trainer/launch/start_words.h"
#include "tools/trainer/terminal/exit_codes.h"

namespace troupe::tools {
namespace {

// Place of this node in the job.
struct Nodes {
  int node = 0;
  int nodes = 1;
  std::string master;
};

// Finds the nodes from options, or from the launcher that started this program
// on each node.
absl::StatusOr<Nodes> FindNodes(const LaunchOptions& options,
                                const actors::Variables& environment) {
  const std::string program =
      options.program.empty() ? "trainer train" : options.program;
  if (environment.Has(actors::kProcessVariable)) {
    return absl::InvalidArgumentError(
        absl::StrCat(environment.Show(actors::kProcessVariable),
                     " is set: this is a process of a job already; start \"",
                     program, "\" here"));
  }
  actors::Variables said;
  if (options.node >= 0) said.Set("--process", absl::StrCat(options.node));
  if (options.nodes > 0) said.Set("--processes", absl::StrCat(options.nodes));
  if (options.nodes == 1) said.Set("--process", "0");
  said.Set("--master", options.master);
  const absl::StatusOr<actors::Placement> found =
      actors::FindPlacement(environment, said);
  if (!found.ok()) {
    return base::WithMessage(found.status(),
                             absl::StrReplaceAll(found.status().message(),
                                                 {{"--processes", "--nnodes"},
                                                  {"--process", "--node-rank"},
                                                  {" processes", " nodes"}}));
  }
  const actors::Placement& placement = *found;
  if (placement.local_processes > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        placement.ToString(), ", and there are ", placement.local_processes,
        " on this node: start \"trainer launch\" once on each node, or \"",
        program, "\" as often"));
  }
  if (placement.meeting == actors::Meeting::kTorchrunStore) {
    return absl::InvalidArgumentError(
        absl::StrCat("launched by ", placement.found_by, ": start \"", program,
                     "\" by it, not \"trainer launch\""));
  }
  Nodes nodes = {placement.process, placement.processes, options.master};
  if (nodes.nodes > 1) nodes.master = placement.master.ToString();
  return nodes;
}

// Returns the place of process `local` of this node.
actors::Placement PlacementOf(const LaunchOptions& options, const Nodes& nodes,
                              int local) {
  const int per_node = options.processes_per_node;
  actors::Placement placement;
  placement.process = nodes.node * per_node + local;
  placement.processes = nodes.nodes * per_node;
  placement.local_process = local;
  placement.local_processes = per_node;
  placement.node = nodes.node;
  placement.nodes = nodes.nodes;
  placement.ranks_per_process = options.ranks_per_process;
  const absl::StatusOr<base::HostPort> master =
      base::ParseHostPort(nodes.master);
  TROUPE_CHECK(master.ok(), "the address was checked, or made");
  placement.master = *master;
  return placement;
}

// Checks the certificates before any process is started. Another program may
// do without them.
absl::Status CheckCerts(const LaunchOptions& options, const Nodes& nodes,
                        absl::Time now) {
  if (!options.certs.empty()) {
    return base::tls::CheckCertificates(
        base::tls::CertificatesIn(options.certs), now);
  }
  const bool insecure =
      std::count(options.command.begin(), options.command.end(),
                 "--insecure-network") > 0;
  if (nodes.nodes == 1 || insecure || !options.program.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "several nodes need certificates: make them by \"trainer certs\", copy "
      "them to each node and add --certs=DIR");
}

}  // namespace

absl::StatusOr<base::GroupEnd> Launch(const LaunchOptions& options,
                                      const LaunchContext& context) {
  const actors::Variables environment =
      actors::ReadEnvironment(context.environment);
  TROUPE_ASSIGN_OR_RETURN(Nodes nodes, FindNodes(options, environment));
  LaunchOptions chosen = options;
  std::string program = context.program;
  base::GroupOptions group = context.group;
  group.stopped_code = kExitStopped;
  if (!options.program.empty()) {
    TROUPE_ASSIGN_OR_RETURN(
        program, FindProgram(options.program, environment.Text("PATH")));
    group.stopped_code.reset();
  }
  if (chosen.certs.empty())
    chosen.certs = environment.Text(actors::kCertsVariable);
  TROUPE_RETURN_IF_ERROR(CheckCerts(chosen, nodes, context.now));
  actors::JobCertificates certificates;
  if (chosen.certs.empty() && nodes.nodes == 1) {
    TROUPE_RETURN_IF_ERROR(certificates.Make(context.now));
  }
  std::optional<base::ReservedPort> port;
  if (nodes.master.empty()) {
    TROUPE_ASSIGN_OR_RETURN(base::ReservedPort reserved,
                            base::ReservedPort::OnLoopback());
    nodes.master = absl::StrCat("127.0.0.1:", reserved.number());
    port.emplace(std::move(reserved));
  }
  if (!chosen.output_dir.empty()) {
    base::PosixFileSystem files;
    TROUPE_RETURN_IF_ERROR(files.CreateFolder(chosen.output_dir));
  }
  const std::vector<std::vector<int>> cores =
      ShareCores(chosen.bind ? chosen.processes_per_node : 1);
  std::vector<base::JobProcess> processes(
      static_cast<std::size_t>(chosen.processes_per_node));
  for (std::size_t i = 0; i < processes.size(); ++i) {
    base::JobProcess& process = processes[i];
    const int local = static_cast<int>(i);
    process.child.command = {program};
    process.child.command.insert(process.child.command.end(),
                                 chosen.command.begin(), chosen.command.end());
    const actors::Placement placement = PlacementOf(chosen, nodes, local);
    process.number = placement.process;
    actors::Variables set = actors::LauncherVariables(placement);
    set.Set(kLaunchedByVariable,
            absl::StrCat(Quoted(context.called_by), " launch ",
                         Quoted(chosen.words)));
    if (!chosen.certs.empty()) set.Set(actors::kCertsVariable, chosen.certs);
    certificates.AddTo(set);
    if (!chosen.program.empty()) actors::AddTorchVariables(placement, set);
    process.child.environment =
        actors::EnvironmentWith(context.environment, set);
    process.child.kept_files = certificates.fds();
    if (chosen.bind) process.child.cores = cores[i];
    if (!chosen.output_dir.empty()) {
      process.output_file = base::JoinPath(
          chosen.output_dir, absl::StrCat("process-", process.number, ".log"));
    }
  }
  return base::RunProcesses(processes, group);
}

}  // namespace troupe::tools

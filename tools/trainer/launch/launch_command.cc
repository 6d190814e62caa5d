#include "tools/trainer/launch/launch_command.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "actors/launchers/launchers.h"
#include "actors/launchers/variables.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/file_system.h"
#include "base/host_port.h"
#include "base/tls/certificate_check.h"
#include "base/tls/certificates.h"
#include "tools/trainer/launch/core_shares.h"
#include "tools/trainer/launch/find_program.h"
#include "tools/trainer/launch/reserved_port.h"
#include "tools/trainer/launch/start_words.h"

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

// Open files with authority, certificate and key of a job on this node only.
class JobCertificates {
 public:
  JobCertificates() = default;
  ~JobCertificates() {
    for (int fd : fds_) close(fd);
  }
  JobCertificates(const JobCertificates&) = delete;
  JobCertificates& operator=(const JobCertificates&) = delete;

  absl::Status Make(absl::Time now) {
    using base::tls::Authority;
    base::tls::CertificateOptions options;
    options.now = now;
    options.validity = absl::Hours(24) * 365;  // a job may run that long
    TROUPE_ASSIGN_OR_RETURN(const Authority authority,
                            Authority::Make(options));
    TROUPE_ASSIGN_OR_RETURN(const std::string authority_pem,
                            authority.CertificatePem());
    TROUPE_ASSIGN_OR_RETURN(
        const base::tls::NodePem node,
        authority.SignNode({"localhost", "127.0.0.1", "::1"}, options));
    for (const auto& [name, pem] : {std::pair("authority.pem", authority_pem),
                                    std::pair("node.pem", node.certificate),
                                    std::pair("node.key", node.key)}) {
      TROUPE_ASSIGN_OR_RETURN(const int fd, base::tls::OpenInMemory(name, pem));
      fds_.push_back(fd);
    }
    return absl::OkStatus();
  }
  const std::vector<int>& fds() const { return fds_; }

 private:
  std::vector<int> fds_;
};

// Returns the environment of a process: this one's, overridden by `set`.
std::vector<std::string> EnvironmentWith(const char* const* environment,
                                         const actors::Variables& set) {
  std::vector<std::string> all;
  for (; *environment != nullptr; ++environment) {
    const std::string entry = *environment;
    if (!set.Has(entry.substr(0, entry.find('=')))) all.push_back(entry);
  }
  for (const auto& [name, value] : set.values()) {
    all.push_back(absl::StrCat(name, "=", value));
  }
  return all;
}

// Sets the variables that torchrun sets, for programs that know no others.
void SetTorchVariables(const LaunchOptions& options, const Nodes& nodes,
                       int local, actors::Variables& set) {
  const int per_node = options.processes_per_node;
  for (const auto& [name, number] :
       {std::pair("RANK", nodes.node * per_node + local),
        std::pair("WORLD_SIZE", nodes.nodes * per_node),
        std::pair("LOCAL_RANK", local), std::pair("LOCAL_WORLD_SIZE", per_node),
        std::pair("GROUP_RANK", nodes.node),
        std::pair("GROUP_WORLD_SIZE", nodes.nodes)}) {
    set.Set(name, absl::StrCat(number));
  }
  const absl::StatusOr<base::HostPort> master =
      base::ParseHostPort(nodes.master);
  TROUPE_CHECK(master.ok(), "the address was checked, or made");
  set.Set("MASTER_ADDR", master->host);
  set.Set("MASTER_PORT", absl::StrCat(master->port));
}

actors::Variables VariablesOf(const LaunchOptions& options,
                              const std::string& called_by, const Nodes& nodes,
                              int local, const std::vector<int>& certificates) {
  const int per_node = options.processes_per_node;
  actors::Variables set;
  for (const auto& [name, number] :
       {std::pair(actors::kProcessVariable, nodes.node * per_node + local),
        std::pair(actors::kProcessesVariable, nodes.nodes * per_node),
        std::pair(actors::kLocalProcessVariable, local),
        std::pair(actors::kLocalProcessesVariable, per_node),
        std::pair(actors::kNodeVariable, nodes.node),
        std::pair(actors::kNodesVariable, nodes.nodes)}) {
    set.Set(name, absl::StrCat(number));
  }
  set.Set(actors::kMasterVariable, nodes.master);
  set.Set(kLaunchedByVariable,
          absl::StrCat(Quoted(called_by), " launch ", Quoted(options.words)));
  if (options.ranks_per_process > 0) {
    set.Set(actors::kRanksPerProcessVariable,
            absl::StrCat(options.ranks_per_process));
  }
  if (!options.certs.empty()) set.Set(actors::kCertsVariable, options.certs);
  if (!certificates.empty()) {
    set.Set(actors::kCertFilesVariable, absl::StrJoin(certificates, ","));
  }
  if (!options.program.empty()) SetTorchVariables(options, nodes, local, set);
  return set;
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

absl::StatusOr<GroupEnd> Launch(const LaunchOptions& options,
                                const LaunchContext& context) {
  const actors::Variables environment =
      actors::ReadEnvironment(context.environment);
  TROUPE_ASSIGN_OR_RETURN(Nodes nodes, FindNodes(options, environment));
  LaunchOptions chosen = options;
  std::string program = context.program;
  GroupOptions group = context.group;
  if (!options.program.empty()) {
    TROUPE_ASSIGN_OR_RETURN(
        program, FindProgram(options.program, environment.Text("PATH")));
    group.runs_trainer = false;
  }
  if (chosen.certs.empty())
    chosen.certs = environment.Text(actors::kCertsVariable);
  TROUPE_RETURN_IF_ERROR(CheckCerts(chosen, nodes, context.now));
  JobCertificates certificates;
  if (chosen.certs.empty() && nodes.nodes == 1) {
    TROUPE_RETURN_IF_ERROR(certificates.Make(context.now));
  }
  std::optional<ReservedPort> port;
  if (nodes.master.empty()) {
    TROUPE_ASSIGN_OR_RETURN(ReservedPort reserved, ReservedPort::OnLoopback());
    nodes.master = absl::StrCat("127.0.0.1:", reserved.number());
    port.emplace(std::move(reserved));
  }
  if (!chosen.output_dir.empty()) {
    base::PosixFileSystem files;
    TROUPE_RETURN_IF_ERROR(files.CreateFolder(chosen.output_dir));
  }
  const std::vector<std::vector<int>> cores =
      ShareCores(chosen.bind ? chosen.processes_per_node : 1);
  std::vector<JobProcess> processes(
      static_cast<std::size_t>(chosen.processes_per_node));
  for (std::size_t i = 0; i < processes.size(); ++i) {
    JobProcess& process = processes[i];
    const int local = static_cast<int>(i);
    process.number = nodes.node * chosen.processes_per_node + local;
    process.child.command = {program};
    process.child.command.insert(process.child.command.end(),
                                 chosen.command.begin(), chosen.command.end());
    process.child.environment = EnvironmentWith(
        context.environment, VariablesOf(chosen, context.called_by, nodes,
                                         local, certificates.fds()));
    process.child.kept_files = certificates.fds();
    if (chosen.bind) process.child.cores = cores[i];
    if (!chosen.output_dir.empty()) {
      process.output_file = base::JoinPath(
          chosen.output_dir, absl::StrCat("process-", process.number, ".log"));
    }
  }
  return RunProcesses(processes, group);
}

}  // namespace troupe::tools

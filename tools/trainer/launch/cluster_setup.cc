#include "tools/trainer/launch/cluster_setup.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/launchers/cluster_from_environment.h"
#include "base/check.h"
#include "base/field_error.h"
#include "comm/connect/transports.h"
#include "tools/trainer/config/config_keys.h"
#include "tools/trainer/terminal/version.h"

namespace troupe::tools {
namespace {

// Whether a key names a file or folder of this host, which may differ between
// hosts.
bool IsOfThisHost(absl::string_view key) {
  return key == "data.path" || absl::StartsWith(key, "log.") ||
         absl::StartsWith(key, "trace.");
}

absl::Status CheckCertificatesNamed(const actors::Placement& placement,
                                    bool insecure) {
  if (insecure || !placement.certificates.certificate.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "processes speak to each other by TLS, and this one has no certificate: "
      "make some by \"trainer certs --dir=certs\" and say --certs=certs in "
      "each process; or trust the network, by --insecure-network");
}

absl::StatusOr<actors::Transport> TransportOf(
    const actors::Placement& placement, const NetworkConfig& network) {
  const comm::TransportRule* const rule =
      comm::FindTransport(network.transport);
  TROUPE_CHECK(rule != nullptr, "the choices of comm.transport are the rows");
  if (rule->by_mpirun && !placement.by_mpirun) {
    return absl::InvalidArgumentError(absl::StrCat(
        "comm.transport = \"", rule->name,
        "\", but this process was launched by ", placement.found_by,
        "; write \"mpirun -n ", placement.processes,
        " trainer train ...\", or set comm.transport = \"auto\""));
  }
  if (rule->library.empty()) return rule->transport;
  if (network.encrypt) {
    return absl::InvalidArgumentError(
        absl::StrCat("comm.encrypt = true, but with comm.transport = \"",
                     rule->name, "\" tensors go as ", rule->library,
                     " sends them; remove one of the two"));
  }
  const absl::Status has = rule->version().status();
  if (has.ok()) return rule->transport;
  return base::WithMessage(has, absl::StrCat("comm.transport = \"", rule->name,
                                             "\": ", has.message()));
}

}  // namespace

absl::StatusOr<std::vector<Setting>> RankSettings(
    const actors::Placement& placement, const LoadedConfig& loaded) {
  const int ranks = loaded.config.job.plan.mesh.size();
  int wanted = ranks;
  if (placement.ranks_per_process > 0) {
    wanted = placement.ranks_per_process * placement.processes;
  } else if (ranks < placement.processes) {
    wanted = placement.processes;
  }
  if (wanted == ranks) return std::vector<Setting>();
  for (const Setting& setting : loaded.settings) {
    if (setting.key != kRanksSetting) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--ranks=", setting.value, " contradicts ", placement.processes,
        " processes with ", wanted / placement.processes,
        " ranks each; write --ranks=", wanted, ", or remove it"));
  }
  return std::vector<Setting>{
      {kRanksSetting, absl::StrCat(wanted),
       absl::StrCat(wanted, " ranks in ", placement.processes, " processes")}};
}

absl::StatusOr<std::optional<actors::ClusterOptions>> ClusterOf(
    const actors::Placement& placement, const LoadedConfig& loaded,
    bool insecure) {
  if (placement.processes == 1) return std::optional<actors::ClusterOptions>();
  const int ranks = loaded.config.job.plan.mesh.size();
  if (ranks < placement.processes) {
    return absl::InvalidArgumentError(
        absl::StrCat("mesh ", loaded.config.job.plan.mesh.ToString(), " has ",
                     ranks, " ranks, fewer than the ", placement.processes,
                     " processes; start fewer, or set mesh.dp"));
  }
  TROUPE_RETURN_IF_ERROR(CheckCertificatesNamed(placement, insecure));
  const NetworkConfig& network = loaded.config.network;
  TROUPE_ASSIGN_OR_RETURN(const actors::Transport transport,
                          TransportOf(placement, network));
  TROUPE_ASSIGN_OR_RETURN(
      std::optional<actors::ClusterOptions> cluster,
      actors::ClusterOf(placement, ranks,
                        insecure ? actors::ControlNetwork::kInsecure
                                 : actors::ControlNetwork::kTls));
  cluster->transport = transport;
  cluster->encrypt_data = network.encrypt;
  cluster->liveness_timeout = network.liveness_timeout;
  cluster->join_timeout = network.join_timeout;
  cluster->agreement = AgreementOf(loaded);
  return cluster;
}

std::string AgreementOf(const LoadedConfig& loaded) {
  std::string lines = absl::StrCat("the trainer's version = ", Version(), "\n");
  for (const ConfigKey& key : ConfigKeys()) {
    if (IsOfThisHost(key.name)) continue;
    absl::StrAppend(&lines, key.name, " = ", FormatValue(key, loaded.config),
                    "\n");
  }
  return lines;
}

}  // namespace troupe::tools

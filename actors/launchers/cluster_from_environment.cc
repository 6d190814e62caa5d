#include "actors/launchers/cluster_from_environment.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "actors/cluster/host_address.h"
#include "actors/launchers/torchrun_store.h"
#include "actors/launchers/variables.h"
#include "base/check.h"
#include "base/host_port.h"

namespace troupe::actors {
namespace {

// Process 0 listens at any port and publishes its address in torchrun's store,
// where the other processes find it.
absl::Status MeetByStore(const Placement& placement, ClusterOptions* cluster) {
  TorchrunStore store;
  store.address = placement.master;
  store.key = placement.store_key;
  if (placement.process > 0) {
    TROUPE_ASSIGN_OR_RETURN(const base::HostPort master, WaitAddress(store));
    cluster->master_host = master.host;
    cluster->master_port = master.port;
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(
      cluster->master_host,
      LocalAddressTo(store.address.host, store.address.port));
  cluster->master_port = 0;
  cluster->on_listening = [store, host = cluster->master_host](int port) {
    return PublishAddress(store, base::HostPort{host, port});
  };
  return absl::OkStatus();
}

absl::Status CheckRanks(const Placement& placement, int ranks) {
  const int per_process = placement.ranks_per_process;
  if (per_process > 0 && ranks != per_process * placement.processes) {
    return absl::InvalidArgumentError(
        absl::StrCat(kRanksPerProcessVariable, "=", per_process, " in ",
                     placement.processes, " processes contradicts the job's ",
                     ranks, " ranks; unset it, or make the job of ",
                     per_process * placement.processes));
  }
  if (ranks >= placement.processes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the job has ", ranks, " ranks, fewer than the ", placement.processes,
      " processes; start fewer, or give the job more ranks"));
}

// Returns the advice of an error in terms of variables: a program of a user has
// no options of ours.
std::string WithoutOptions(absl::string_view message) {
  return absl::StrReplaceAll(
      message, {{" or add --processes=N", ""},
                {"add --process=I", "set RANK and WORLD_SIZE in its place"},
                {"add --master=", absl::StrCat("set ", kMasterVariable, "=")}});
}

}  // namespace

absl::StatusOr<Placement> PlacementFromEnvironment(
    const char* const* environment) {
  absl::StatusOr<Placement> placement =
      FindPlacement(ReadEnvironment(environment), Variables());
  if (placement.ok()) return placement;
  return absl::Status(placement.status().code(),
                      WithoutOptions(placement.status().message()));
}

absl::StatusOr<std::optional<ClusterOptions>> ClusterOf(
    const Placement& placement, int ranks, ControlNetwork network) {
  TROUPE_RETURN_IF_ERROR(CheckRanks(placement, ranks));
  if (placement.processes == 1) return std::optional<ClusterOptions>();
  ClusterOptions cluster;
  cluster.process = placement.process;
  cluster.processes = placement.processes;
  cluster.ranks = ranks / placement.processes +
                  (placement.process < ranks % placement.processes ? 1 : 0);
  cluster.master_host = placement.master.host;
  cluster.master_port = placement.master.port;
  cluster.certificates = placement.certificates;
  cluster.insecure = network == ControlNetwork::kInsecure;
  if (!cluster.insecure && cluster.certificates.certificate.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        placement.ToString(),
        ", and processes speak to each other by TLS, for which this one has "
        "no certificate; make some by \"trainer certs --dir=certs\" and set ",
        kCertsVariable, "=certs/node in each process"));
  }
  if (placement.meeting == Meeting::kTorchrunStore) {
    TROUPE_RETURN_IF_ERROR(MeetByStore(placement, &cluster));
  }
  return std::optional<ClusterOptions>(std::move(cluster));
}

absl::StatusOr<std::optional<ClusterOptions>> ClusterFromEnvironment(
    int ranks, ControlNetwork network, const char* const* environment) {
  TROUPE_ASSIGN_OR_RETURN(const Placement placement,
                          PlacementFromEnvironment(environment));
  return ClusterOf(placement, ranks, network);
}

}  // namespace troupe::actors

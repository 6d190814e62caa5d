// Two or more hosts on this machine, for tests and benchmarks of what crosses a
// network: network namespaces, joined by veth pairs through a bridge.
//
//   NetworkOptions options;
//   options.hosts = 2;
//   options.rate = "1gbit";
//   absl::StatusOr<std::unique_ptr<NetworkHosts>> hosts =
//       NetworkHosts::Make(options);
//   Run((*hosts)->Command(1, {"ping", "-c1", (*hosts)->address(0)}));
//
// A host has the interfaces "lo" and "eth0", the address 10.0.0.1, 10.0.0.2,
// ..., and this machine's files and processes. Nothing leads out of them.
//
// Namespaces, pairs and bridge have no names: descriptors of this process hold
// them. They are gone with the last process that uses them, however that ends,
// and nothing of the machine's own network is touched.
//
// Needs root, ip(8), tc(8) and nsenter(1). Threads: any, one at a time.

#ifndef TOOLS_NETWORK_NETWORK_HOSTS_H_
#define TOOLS_NETWORK_NETWORK_HOSTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace troupe::network {

inline constexpr int kNetworkHostsMax = 16;

struct NetworkOptions {
  int hosts = 2;
  // Of what a host sends, as tc(8) writes it: "1gbit". Empty: no limit.
  std::string rate;
};

class NetworkHosts {
 public:
  //   kInvalidArgument: options that cannot be, named.
  //   kPermissionDenied: "needs root ...".
  //   kFailedPrecondition: this machine has no namespaces, bridges, veth pairs
  //     or rates, or lets nobody make them: what was said.
  //   kUnavailable: what else ip(8) or tc(8) said.
  static absl::StatusOr<std::unique_ptr<NetworkHosts>> Make(
      const NetworkOptions& options);
  // Whether Make() failed for what this machine is: tests skip themselves.
  static bool CannotBeHere(const absl::Status& status);
  ~NetworkHosts();
  NetworkHosts(const NetworkHosts&) = delete;
  NetworkHosts& operator=(const NetworkHosts&) = delete;

  int size() const { return static_cast<int>(hosts_.size()); }
  // "10.0.0.1" of host 0.
  static std::string address(int host);

  // The words that run `command` on a host, for as long as this process has
  // the descriptors: it is found by them.
  std::vector<std::string> Command(int host,
                                   std::vector<std::string> command) const;
  // The same at the bridge, where "host0", "host1", ... are the other ends.
  std::vector<std::string> SwitchCommand(
      std::vector<std::string> command) const;

  // The calling thread is on that host from now on, and so is what it starts.
  absl::Status Enter(int host) const;

  // Cuts a host off, as if its cable were pulled, and plugs it in again.
  absl::Status Cut(int host);
  absl::Status Heal(int host);

  // Lets programs that this process becomes, or starts, keep the descriptors.
  void KeepAcrossExec();

 private:
  NetworkHosts() = default;
  absl::Status AddHost(int host, const std::string& rate);

  int switch_ = -1;         // a namespace with the bridge
  std::vector<int> hosts_;  // namespaces
};

}  // namespace troupe::network

#endif  // TOOLS_NETWORK_NETWORK_HOSTS_H_

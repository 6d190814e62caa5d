// Emulates two or more hosts on this machine, for tests and benchmarks over a
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
// ..., and this machine's files and processes. It has no route to other
// networks.
//
// Namespaces, pairs and bridge have no names; descriptors of this process hold
// them. The kernel removes them when the last process that uses them ends, even
// if it is killed. The machine's own network is not changed.
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
  // Limit on the rate at which a host sends, in the notation of tc(8):
  // "1gbit". Empty: no limit.
  std::string rate;
};

class NetworkHosts {
 public:
  // Makes the hosts.
  //   kInvalidArgument: an option is invalid; the message names it.
  //   kPermissionDenied: "needs root ...".
  //   kFailedPrecondition: this machine has no namespaces, bridges, veth pairs
  //     or rates, or denies them even to root.
  //   kUnavailable: another error of ip(8) or tc(8).
  //   The last two contain the output of ip(8) or tc(8), if one failed.
  static absl::StatusOr<std::unique_ptr<NetworkHosts>> Make(
      const NetworkOptions& options);
  // Returns whether Make() failed because this machine does not support it;
  // tests then skip themselves.
  static bool CannotBeHere(const absl::Status& status);
  ~NetworkHosts();
  NetworkHosts(const NetworkHosts&) = delete;
  NetworkHosts& operator=(const NetworkHosts&) = delete;

  int size() const { return static_cast<int>(hosts_.size()); }
  // Returns the address of a host, "10.0.0.1" for host 0.
  static std::string address(int host);

  // Returns the words that run `command` on a host. They name descriptors of
  // this process, and work as long as it holds them.
  std::vector<std::string> Command(int host,
                                   std::vector<std::string> command) const;
  // Returns the same for the bridge's namespace, where "host0", "host1", ...
  // are the other ends of the pairs.
  std::vector<std::string> SwitchCommand(
      std::vector<std::string> command) const;

  // Moves the calling thread to a host, and with it all that it starts later.
  absl::Status Enter(int host) const;

  // Disconnect a host, as if its cable were pulled, and connect it again.
  absl::Status Cut(int host);
  absl::Status Heal(int host);

  // Keeps the descriptors open in programs that this process executes later.
  void KeepAcrossExec();

 private:
  NetworkHosts() = default;
  absl::Status AddHost(int host, const std::string& rate);

  int switch_ = -1;         // descriptor of the namespace with the bridge
  std::vector<int> hosts_;  // descriptors of the hosts' namespaces
};

}  // namespace troupe::network

#endif  // TOOLS_NETWORK_NETWORK_HOSTS_H_

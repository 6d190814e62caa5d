#include "actors/cluster/peer_links.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/cluster/host_address.h"
#include "base/check.h"
#include "comm/connect/connect_options.h"

namespace troupe::actors {

absl::StatusOr<comm::PeerLinks> ConnectPeers(const ClusterOptions& options,
                                             const Welcome& welcome,
                                             comm::Store& store) {
  comm::ConnectOptions connect;
  connect.process = options.process;
  connect.processes = options.processes;
  connect.transport = options.transport;
  connect.generation = welcome.generation;
  if (options.encrypt_data) connect.tls = options.certificates;
  connect.key_prefix = absl::StrCat("links/", welcome.generation);
  if (welcome.token.size() != connect.token.size()) {
    return absl::InternalError("process 0 sent a token of another length");
  }
  std::copy(welcome.token.begin(), welcome.token.end(), connect.token.begin());
  // The others can reach this process at the address from which it reaches
  // process 0.
  TROUPE_ASSIGN_OR_RETURN(
      connect.bind_address,
      options.data_host.empty()
          ? LocalAddressTo(options.master_host, options.master_port)
          : absl::StatusOr<std::string>(options.data_host));
  return comm::RuleOf(connect.transport).connect(connect, store);
}

std::string DescribeTransports(
    const std::vector<std::unique_ptr<comm::Link>>& links) {
  std::map<std::string, int> counts;
  for (const auto& link : links) {
    if (link == nullptr) continue;
    // "tcp to process 3 at ..."
    const std::string name = link->ToString();
    ++counts[name.substr(0, name.find(' '))];
  }
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& each) {
    absl::StrAppend(out, each.first, " (", each.second,
                    each.second == 1 ? " link)" : " links)");
  });
}

}  // namespace troupe::actors

#include "tests/comm/links/meeting.h"

#include <map>
#include <utility>

#include "base/check.h"
#include "comm/connect/connect_links.h"
#include "gtest/gtest.h"
#include "tests/comm/links/test_certificates.h"
#include "tools/network/network_hosts.h"

namespace troupe::comm {
namespace {

using network::NetworkHosts;

// Returns all hosts that were made, by their number.
std::map<int, std::unique_ptr<NetworkHosts>>& AllHosts() {
  static auto* const hosts = new std::map<int, std::unique_ptr<NetworkHosts>>;
  return *hosts;
}

const TlsFiles& Certificates() {
  static const auto* const files =
      new TlsFiles(MakeTestCertificates(testing::TempDir(), "meeting"));
  return *files;
}

}  // namespace

absl::Status Prepare(const Meeting& meeting) {
  if (meeting.tls) Certificates();
  if (meeting.hosts == 0 || AllHosts().count(meeting.hosts) > 0) {
    return absl::OkStatus();
  }
  network::NetworkOptions options;
  options.hosts = meeting.hosts;
  TROUPE_ASSIGN_OR_RETURN(AllHosts()[meeting.hosts],
                          NetworkHosts::Make(options));
  return absl::OkStatus();
}

std::vector<std::unique_ptr<Link>> Meet(const Meeting& meeting, int process,
                                        int processes, Store& store) {
  ConnectOptions options;
  options.process = process;
  options.processes = processes;
  options.token.fill(3);
  options.transport = meeting.transport;
  if (meeting.tls) options.tls = Certificates();
  if (meeting.hosts > 0) {
    const int host = process % meeting.hosts;
    const absl::Status entered = AllHosts().at(meeting.hosts)->Enter(host);
    TROUPE_CHECK(entered.ok(), "root may enter its namespaces");
    options.bind_address = NetworkHosts::address(host);
  }
  auto links = ConnectLinks(options, store);
  EXPECT_TRUE(links.ok()) << links.status();
  TROUPE_CHECK(links.ok(), "processes of a test find each other");
  return *std::move(links);
}

}  // namespace troupe::comm

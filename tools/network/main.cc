// Runs a command beside hosts of its own (network_hosts.h), for scripts.
//
//   network_hosts --hosts=2 --rate=1gbit -- sh -c '$HOST0 COMMAND $ADDRESS1'
//
// The command finds in its environment, for each host: HOST0, the words that
// run something there; ADDRESS0, its address; and SWITCH, the words that run
// something at the bridge: `$SWITCH ip link set host0 down` cuts host 0 off.
// Nothing is left when the command has ended, or was killed.
//
// Exits as the command does; 77 where it cannot, for want of root.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/network/network_hosts.h"

ABSL_FLAG(int, hosts, 2, "hosts");
ABSL_FLAG(std::string, rate, "",
          "of what a host sends, as tc(8) writes it (1gbit); empty: no limit");

namespace troupe::network {
namespace {

constexpr int kCannotRun = 127;
constexpr int kSkipped = 77;

int Main(const std::vector<char*>& arguments) {
  if (arguments.size() < 2) {
    std::fprintf(stderr, "network_hosts: no command; --help has an example\n");
    return kCannotRun;
  }
  NetworkOptions options;
  options.hosts = absl::GetFlag(FLAGS_hosts);
  options.rate = absl::GetFlag(FLAGS_rate);
  absl::StatusOr<std::unique_ptr<NetworkHosts>> hosts =
      NetworkHosts::Make(options);
  if (!hosts.ok()) {
    const bool skipped = NetworkHosts::CannotBeHere(hosts.status());
    std::fprintf(stderr, "network_hosts: %s%s\n", skipped ? "skipped: " : "",
                 std::string(hosts.status().message()).c_str());
    return skipped ? kSkipped : kCannotRun;
  }
  (*hosts)->KeepAcrossExec();
  const auto set = [](const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
  };
  for (int host = 0; host < (*hosts)->size(); ++host) {
    set(absl::StrCat("HOST", host),
        absl::StrJoin((*hosts)->Command(host, {}), " "));
    set(absl::StrCat("ADDRESS", host), NetworkHosts::address(host));
  }
  set("SWITCH", absl::StrJoin((*hosts)->SwitchCommand({}), " "));
  std::vector<char*> argv(arguments.begin() + 1, arguments.end());
  argv.push_back(nullptr);
  // The command is this process from now on, and so has its descriptors.
  ::execvp(argv[0], argv.data());
  std::perror(argv[0]);
  return kCannotRun;
}

}  // namespace
}  // namespace troupe::network

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Runs a command beside hosts of its own, made of network namespaces.\n"
      "network_hosts --hosts=2 --rate=1gbit -- sh -c '$HOST0 CMD $ADDRESS1'");
  return troupe::network::Main(absl::ParseCommandLine(argc, argv));
}

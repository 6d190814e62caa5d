// Runs a command with emulated hosts (network_hosts.h), for scripts.
//
//   network_hosts --hosts=2 --rate=1gbit -- sh -c '$HOST0 COMMAND $ADDRESS1'
//
// The environment of the command has, for each host, HOST0, the words that run
// a program there, and ADDRESS0, its address; and SWITCH, the words that run a
// program at the bridge: `$SWITCH ip link set host0 down` disconnects host 0.
// Nothing is left when the command has ended or was killed.
//
// Exits with the command's status; with 77 if it cannot run without root.

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

ABSL_FLAG(int, hosts, 2, "number of hosts");
ABSL_FLAG(std::string, rate, "",
          "limit on a host's sending rate, in the notation of tc(8) (1gbit); "
          "empty: no limit");

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
  // The command replaces this program in the process, and keeps its
  // descriptors.
  ::execvp(argv[0], argv.data());
  std::perror(argv[0]);
  return kCannotRun;
}

}  // namespace
}  // namespace troupe::network

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Runs a command with emulated hosts, made of network namespaces.\n"
      "network_hosts --hosts=2 --rate=1gbit -- sh -c '$HOST0 CMD $ADDRESS1'");
  return troupe::network::Main(absl::ParseCommandLine(argc, argv));
}

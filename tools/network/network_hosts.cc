#include "tools/network/network_hosts.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tools/network/run_programs.h"

namespace troupe::network {
namespace {

// Its folder is only in root's PATH.
constexpr char kTc[] = "/usr/sbin/tc";
constexpr char kNeedsRoot[] = "needs root, for network namespaces";

// Makes a network namespace and returns a descriptor that holds it. A thread
// makes it, as that must enter it, and then ends.
absl::StatusOr<int> MakeNamespace() {
  int fd = -1;
  int error = 0;
  std::thread maker([&] {
    if (::unshare(CLONE_NEWNET) == 0) {
      fd = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0) error = errno;
  });
  maker.join();
  if (fd >= 0) return fd;
  if (error == EPERM) return absl::PermissionDeniedError(kNeedsRoot);
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot make a network namespace: ", std::strerror(error),
      "; use a kernel that has them, and raise user.max_net_namespaces"));
}

std::string PathOf(int fd) {
  return absl::StrCat("/proc/", ::getpid(), "/fd/", fd);
}

std::vector<std::string> Within(int fd, std::vector<std::string> command) {
  std::vector<std::string> words = {"nsenter",
                                    absl::StrCat("--net=", PathOf(fd)), "--"};
  for (std::string& word : command) words.push_back(std::move(word));
  return words;
}

absl::Status Run(std::vector<std::string> words) {
  return RunPrograms({std::move(words)});
}

// Runs a command that fails if the kernel lacks a feature or denies it to root.
absl::Status RunIfAble(std::vector<std::string> words) {
  const absl::Status status = Run(std::move(words));
  return status.ok() ? status : absl::FailedPreconditionError(status.message());
}

std::string PortOf(int host) { return absl::StrCat("host", host); }

}  // namespace

absl::StatusOr<std::unique_ptr<NetworkHosts>> NetworkHosts::Make(
    const NetworkOptions& options) {
  if (options.hosts < 1 || options.hosts > kNetworkHostsMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "hosts = ", options.hosts, ": must be from 1 to ", kNetworkHostsMax));
  }
  if (::geteuid() != 0) return absl::PermissionDeniedError(kNeedsRoot);
  std::unique_ptr<NetworkHosts> hosts(new NetworkHosts);
  TROUPE_ASSIGN_OR_RETURN(hosts->switch_, MakeNamespace());
  for (int host = 0; host < options.hosts; ++host) {
    TROUPE_ASSIGN_OR_RETURN(const int fd, MakeNamespace());
    hosts->hosts_.push_back(fd);
  }
  TROUPE_RETURN_IF_ERROR(RunIfAble(hosts->SwitchCommand(
      {"ip", "link", "add", "bridge0", "type", "bridge"})));
  TROUPE_RETURN_IF_ERROR(
      Run(hosts->SwitchCommand({"ip", "link", "set", "bridge0", "up"})));
  for (int host = 0; host < options.hosts; ++host) {
    TROUPE_RETURN_IF_ERROR(hosts->AddHost(host, options.rate));
  }
  return hosts;
}

absl::Status NetworkHosts::AddHost(int host, const std::string& rate) {
  TROUPE_RETURN_IF_ERROR(RunIfAble(
      SwitchCommand({"ip", "link", "add", PortOf(host), "type", "veth", "peer",
                     "name", "eth0", "netns", PathOf(hosts_[host])})));
  TROUPE_RETURN_IF_ERROR(Run(SwitchCommand(
      {"ip", "link", "set", PortOf(host), "master", "bridge0", "up"})));
  const std::vector<std::vector<std::string>> commands = {
      {"ip", "link", "set", "lo", "up"},
      {"ip", "address", "add", absl::StrCat(address(host), "/24"), "dev",
       "eth0"},
      {"ip", "link", "set", "eth0", "up"}};
  for (const std::vector<std::string>& command : commands) {
    TROUPE_RETURN_IF_ERROR(Run(Command(host, command)));
  }
  if (rate.empty()) return absl::OkStatus();
  // A burst holds several of the largest segments of a veth (64 KB), and the
  // bytes that 10 Gbit/s carry between two ticks of a slow timer.
  const absl::Status limited =
      Run(Command(host, {kTc, "qdisc", "add", "dev", "eth0", "root", "tbf",
                         "rate", rate, "burst", "512kb", "latency", "50ms"}));
  // tc(8) prints this if the kernel has no such limits.
  if (absl::StrContains(limited.message(), "kind is unknown")) {
    return absl::FailedPreconditionError(limited.message());
  }
  return limited;
}

bool NetworkHosts::CannotBeHere(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsFailedPrecondition(status);
}

NetworkHosts::~NetworkHosts() {
  for (int fd : hosts_) ::close(fd);
  if (switch_ >= 0) ::close(switch_);
}

std::string NetworkHosts::address(int host) {
  return absl::StrCat("10.0.0.", host + 1);
}

std::vector<std::string> NetworkHosts::Command(
    int host, std::vector<std::string> command) const {
  return Within(hosts_[host], std::move(command));
}

std::vector<std::string> NetworkHosts::SwitchCommand(
    std::vector<std::string> command) const {
  return Within(switch_, std::move(command));
}

absl::Status NetworkHosts::Enter(int host) const {
  if (::setns(hosts_[host], CLONE_NEWNET) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "setns");
}

absl::Status NetworkHosts::Cut(int host) {
  return Run(SwitchCommand({"ip", "link", "set", PortOf(host), "down"}));
}

absl::Status NetworkHosts::Heal(int host) {
  return Run(SwitchCommand({"ip", "link", "set", PortOf(host), "up"}));
}

void NetworkHosts::KeepAcrossExec() {
  for (int fd : hosts_) ::fcntl(fd, F_SETFD, 0);
  ::fcntl(switch_, F_SETFD, 0);
}

}  // namespace troupe::network

#include "actors/launchers/self_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "actors/launchers/cluster_from_environment.h"
#include "actors/launchers/local_launch.h"
#include "base/check.h"
#include "base/files/file_system.h"
#include "base/processes/process_group.h"
#include "base/processes/reserved_port.h"
#include "base/tls/certificates.h"

namespace troupe::actors {
namespace {

// A report is empty until its process has come to the call, then this byte,
// and at the end also "CODE MESSAGE".
constexpr char kJoined[] = "j";
constexpr std::size_t kReportBytesMax = 64 << 10;

// Number of calls in this process so far.
std::atomic<int> calls{0};

// Message of the starter to this process.
struct Told {
  int call = 0;  // 0: nothing
  int report = -1;
};

Told ReadTold() {
  const std::string text = ReadEnvironment(environ).Text(kSelfLaunchVariable);
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  Told told;
  int starter = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &told.call) ||
      !absl::SimpleAtoi(parts[1], &starter) ||
      !absl::SimpleAtoi(parts[2], &told.report) || starter != getppid()) {
    // Not set, or inherited from a process of a job that has started this one.
    return Told();
  }
  return told;
}

absl::StatusOr<std::string> OwnPath() {
  std::array<char, 4096> path;
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size());
  if (n <= 0) return base::FileError(errno, "read", "/proc/self/exe");
  return std::string(path.data(), static_cast<std::size_t>(n));
}

absl::StatusOr<std::vector<std::string>> OwnCommand() {
  // The kernel gives this file no size.
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> command;
  for (std::string word; std::getline(file, word, '\0');) {
    command.push_back(word);
  }
  if (!command.empty()) return command;
  return absl::UnavailableError(
      "the arguments of this process cannot be read from /proc/self/cmdline; "
      "mount /proc");
}

// Returns the environment without the user's certificates, which would take the
// place of those of the processes.
std::vector<const char*> OwnEnvironment() {
  std::vector<const char*> kept;
  for (const char* const* entry = environ; *entry != nullptr; ++entry) {
    if (absl::StartsWith(*entry, absl::StrCat(kCertsVariable, "="))) continue;
    kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

// Returns what the process has written to its report.
std::string ReadReport(int fd) {
  std::string text(kReportBytesMax, '\0');
  const ssize_t n = pread(fd, &text[0], text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, n)));
  return text;
}

void WriteReport(int fd, absl::string_view text) {
  text = text.substr(0, kReportBytesMax - 1);
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the starter then says what it sees
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Returns the status in a report; nothing if it has none.
std::optional<absl::Status> StatusIn(const std::string& report) {
  const std::size_t space = report.find(' ');
  int code = 0;
  if (space == std::string::npos ||
      !absl::SimpleAtoi(report.substr(1, space - 1), &code)) {
    return std::nullopt;
  }
  return absl::Status(static_cast<absl::StatusCode>(code),
                      report.substr(space + 1));
}

absl::Status CheckNotLaunched() {
  TROUPE_ASSIGN_OR_RETURN(const Placement placement,
                          PlacementFromEnvironment());
  if (placement.processes == 1) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      placement.ToString(),
      ", so this process starts no others: use Main() in place of Spawn(), "
      "which spreads the ranks over the launcher's processes, or leave "
      "SpawnOptions.processes at 1"));
}

}  // namespace

bool SelfLaunch::IsExpected() { return ReadTold().call > calls.load(); }

absl::StatusOr<SelfLaunch> SelfLaunch::Begin(int processes, int ranks) {
  if (ranks < processes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "SpawnOptions.processes is ", processes, " and SpawnOptions.ranks ",
        ranks, ": each process has a rank at least; raise ranks to ",
        processes));
  }
  const int call = ++calls;
  const Told told = ReadTold();
  if (told.call > call) return SelfLaunch(Part::kPast, call, processes, ranks);
  if (told.call > 0 && told.call < call) {
    return absl::FailedPreconditionError(absl::StrCat(
        "SpawnOptions.processes is ", processes,
        " in a program that runs in such processes already: only main() "
        "starts them; leave processes at 1 here"));
  }
  SelfLaunch launch(told.call == call ? Part::kMember : Part::kStarter, call,
                    processes, ranks);
  if (launch.part_ == Part::kMember) {
    TROUPE_RETURN_IF_ERROR(launch.Join(told.report));
  } else {
    TROUPE_RETURN_IF_ERROR(CheckNotLaunched());
  }
  return launch;
}

absl::Status SelfLaunch::Join(int report) {
  // Programs that this one starts do not inherit it.
  if (fcntl(report, F_SETFD, FD_CLOEXEC) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        kSelfLaunchVariable, " is set, and the file ", report,
        " that it names is closed; unset it, or leave open what main() did not "
        "open"));
  }
  reports_.emplace_back(report);
  WriteReport(report, kJoined);
  const absl::Status joined = [&]() -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(const Placement placement,
                            PlacementFromEnvironment());
    if (placement.processes != processes_) {
      return absl::FailedPreconditionError(absl::StrCat(
          "call ", call_, " of Spawn() with SpawnOptions.processes has ",
          processes_, " processes here and ", placement.processes,
          " where it began: main() must come to the same calls in each "
          "process"));
    }
    TROUPE_ASSIGN_OR_RETURN(cluster_, ClusterOf(placement, ranks_));
    return absl::OkStatus();
  }();
  if (!joined.ok()) ReportAndExit(joined);
  return absl::OkStatus();
}

void SelfLaunch::ReportAndExit(const absl::Status& status) {
  WriteReport(reports_.front().get(),
              absl::StrCat(status.raw_code(), " ", status.message()));
  exit(status.ok() ? 0 : 1);
}

absl::Status SelfLaunch::RunProcesses() {
  TROUPE_ASSIGN_OR_RETURN(const std::string program, OwnPath());
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> command, OwnCommand());
  JobCertificates certificates;
  TROUPE_RETURN_IF_ERROR(certificates.Make(absl::Now()));
  TROUPE_ASSIGN_OR_RETURN(const base::ReservedPort port,
                          base::ReservedPort::OnLoopback());
  const std::vector<const char*> environment = OwnEnvironment();
  std::vector<base::JobProcess> children(processes_);
  for (int p = 0; p < processes_; ++p) {
    Placement placement;
    placement.process = placement.local_process = p;
    placement.processes = placement.local_processes = processes_;
    placement.master = {"127.0.0.1", port.number()};
    TROUPE_ASSIGN_OR_RETURN(const int report,
                            base::tls::OpenInMemory("spawn", /*text=*/""));
    reports_.emplace_back(report);
    Variables set = LauncherVariables(placement);
    AddTorchVariables(placement, set);
    certificates.AddTo(set);
    set.Set(kSelfLaunchVariable,
            absl::StrCat(call_, ",", getpid(), ",", report));
    base::JobProcess& child = children[p];
    child.number = p;
    // The link, not the path that it has: the file may have been replaced.
    child.child.program = "/proc/self/exe";
    child.child.command = command;
    child.child.environment = EnvironmentWith(environment.data(), set);
    child.child.kept_files = certificates.fds();
    child.child.kept_files.push_back(report);
    child.is_complete = [report] {
      return StatusIn(ReadReport(report)).has_value();
    };
  }
  base::GroupOptions options;
  options.name = program.substr(program.rfind('/') + 1);
  options.marks_lines = false;
  fflush(nullptr);  // buffered output comes before that of the processes
  TROUPE_ASSIGN_OR_RETURN(const base::GroupEnd end,
                          base::RunProcesses(children, options));
  if (end.first_failure < 0) return absl::OkStatus();
  if (end.words.empty()) {
    return absl::CancelledError(absl::StrCat("the processes were ended by ",
                                             base::SignalName(end.signal)));
  }
  int failed = end.first_failure;
  std::string words = end.words;
  // A process that has exited in the middle may be found behind a peer that
  // lost it, and reported that.
  for (int p = 0; p < processes_ && WIFEXITED(end.statuses[failed]); ++p) {
    const int status = end.statuses[p];
    if (p == failed || !WIFEXITED(status) ||
        StatusIn(ReadReport(reports_[p].get())).has_value()) {
      continue;
    }
    failed = p;
    words = absl::StrCat("process ", p, " has ended with code ",
                         WEXITSTATUS(status));
    break;
  }
  const std::string report = ReadReport(reports_[failed].get());
  if (WIFEXITED(end.statuses[failed])) {
    const std::optional<absl::Status> status = StatusIn(report);
    if (status.has_value() && !status->ok()) return *status;
    if (report.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          words, ": it has not come to call ", call_,
          " of Spawn() with SpawnOptions.processes; main() must come to the "
          "same calls in each process"));
    }
  }
  std::string text = absl::StrCat(Describe(failed), ": ", words);
  for (int p = 0; p < processes_; ++p) {
    const std::optional<absl::Status> of_peer =
        StatusIn(ReadReport(reports_[p].get()));
    if (p == failed || !of_peer.has_value() || of_peer->ok()) continue;
    absl::StrAppend(&text, "; process ", p, " says: ", of_peer->message());
    break;
  }
  return absl::UnavailableError(text);
}

std::string SelfLaunch::Describe(int process) const {
  const int each = ranks_ / processes_, more = ranks_ % processes_;
  const int first = process * each + std::min(process, more);
  const int count = each + (process < more ? 1 : 0);
  return count == 1 ? absl::StrCat("rank ", first)
                    : absl::StrCat("ranks ", first, " to ", first + count - 1);
}

}  // namespace troupe::actors

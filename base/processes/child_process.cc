#include "base/processes/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <memory>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"

namespace troupe::base {
namespace {

// Data that the child needs between fork() and exec(), where it may not
// allocate memory.
struct Prepared {
  const char* program = nullptr;
  std::vector<char*> command;
  std::vector<char*> environment;
  std::vector<char> cores;  // a cpu_set_t of any length; empty: all
};

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) {
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<char> CpuSet(const std::vector<int>& cores) {
  if (cores.empty()) return {};
  const int count = 1 + *std::max_element(cores.begin(), cores.end());
  std::vector<char> set(CPU_ALLOC_SIZE(count), 0);
  auto* const cpus = reinterpret_cast<cpu_set_t*>(set.data());
  for (int core : cores) CPU_SET_S(core, set.size(), cpus);
  return set;
}

// Sets signals to the state that a program expects at its start.
void ResetSignals() {
  // The parent ignores these, and exec() would preserve that.
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  // A group in the background may write to a terminal that has `tostop`.
  signal(SIGTTOU, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Replaces this process by the program. Returns only after a failure, with its
// errno.
void BecomeProgram(const ChildSpec& spec, const Prepared& prepared,
                   pid_t parent) {
  if (setpgid(0, 0) != 0) return;
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
  // The parent ended before the call above took effect.
  if (getppid() != parent) _exit(1);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) return;
  if (nothing != STDIN_FILENO) close(nothing);
  // Duplicates both first, since either may be the other's target.
  const int out = dup(spec.out), err = dup(spec.err);
  if (out < 0 || err < 0 || dup2(out, STDOUT_FILENO) < 0 ||
      dup2(err, STDERR_FILENO) < 0) {
    return;
  }
  close(out);
  close(err);
  for (int file : spec.kept_files) {
    if (fcntl(file, F_SETFD, 0) != 0) return;
  }
  // Ignores errors: cores may have become unavailable.
  if (!prepared.cores.empty()) {
    sched_setaffinity(
        0, prepared.cores.size(),
        reinterpret_cast<const cpu_set_t*>(prepared.cores.data()));
  }
  ResetSignals();
  execve(prepared.program, prepared.command.data(),
         prepared.environment.data());
}

}  // namespace

absl::StatusOr<pid_t> StartChild(const ChildSpec& spec) {
  const std::string& program =
      spec.program.empty() ? spec.command[0] : spec.program;
  const Prepared prepared = {program.c_str(), Pointers(spec.command),
                             Pointers(spec.environment), CpuSet(spec.cores)};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return FileError(errno, "start", spec.command[0]);
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    BecomeProgram(spec, prepared, parent);
    const int error = errno;
    [[maybe_unused]] const ssize_t written =
        write(ends[1], &error, sizeof(error));
    _exit(127);
  }
  const int fork_error = errno;
  close(ends[1]);
  int error = 0;
  ssize_t got = 0;
  if (pid > 0) {
    // A successful exec() closes the other end.
    do {
      got = read(ends[0], &error, sizeof(error));
    } while (got < 0 && errno == EINTR);
  }
  close(ends[0]);
  if (pid < 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot start a process: ", std::generic_category().message(fork_error),
        "; raise the system's limits on processes (ulimit -u, or the pids "
        "limit of the container) or start fewer"));
  }
  if (got == 0) return pid;
  waitpid(pid, nullptr, 0);
  if (error == ENOEXEC) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot start ", spec.command[0],
        ": it is no program for this machine, and no script with an "
        "interpreter; add a first line such as #!/bin/sh"));
  }
  return FileError(error, "start", spec.command[0]);
}

}  // namespace troupe::base

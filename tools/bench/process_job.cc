#include "tools/bench/process_job.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/step_seconds.h"
#include "base/check.h"
#include "base/files/owned_fd.h"

namespace troupe::bench {
namespace {

struct Pipe {
  base::OwnedFd read, write;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (::pipe(ends) != 0) return absl::ErrnoToStatus(errno, "pipe");
  return Pipe{base::OwnedFd(ends[0]), base::OwnedFd(ends[1])};
}

template <typename T>
bool Write(const base::OwnedFd& fd, const T& value) {
  return ::write(fd.get(), &value, sizeof(value)) == sizeof(value);
}
template <typename T>
bool Read(const base::OwnedFd& fd, T& value) {
  return ::read(fd.get(), &value, sizeof(value)) == sizeof(value);
}

// Runs one process of the job; process 0 writes the rate to `result`, and sends
// its port to the others through `port`.
absl::Status RunProcess(const ProcessJob& job, double seconds, int process,
                        const Pipe& port, const Pipe& result) {
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec, job.make());
  if (job.processes > 1) {
    actors::ClusterOptions cluster;
    cluster.process = process;
    cluster.processes = job.processes;
    cluster.transport = job.transport;
    cluster.insecure = true;  // on loopback
    cluster.on_listening = [&](int at) {
      for (int other = 1; other < job.processes; ++other) {
        if (Write(port.write, at)) continue;
        return absl::InternalError("the port could not be told");
      }
      return absl::OkStatus();
    };
    if (process > 0 && !Read(port.read, cluster.master_port)) {
      return absl::InternalError("process 0 told no port");
    }
    spec.cluster = std::move(cluster);
  }
  if (process > 0) return actors::RunJob(spec, nullptr).status();
  TROUPE_ASSIGN_OR_RETURN(const double rate,
                          actors::StepsPerSecond(spec, seconds));
  return Write(result.write, rate)
             ? absl::OkStatus()
             : absl::InternalError("the rate could not be told");
}

}  // namespace

absl::StatusOr<double> StepsPerSecondInProcesses(const ProcessJob& job,
                                                 double seconds) {
  TROUPE_ASSIGN_OR_RETURN(Pipe port, MakePipe());
  TROUPE_ASSIGN_OR_RETURN(Pipe result, MakePipe());
  std::vector<pid_t> children;
  for (int process = 0; process < job.processes; ++process) {
    const pid_t child = ::fork();
    if (child < 0) return absl::ErrnoToStatus(errno, "fork");
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (process > 0) {
        port.write.reset();
        result.write.reset();
      }
      const absl::Status status =
          RunProcess(job, seconds, process, port, result);
      if (!status.ok()) {
        std::fprintf(stderr, "process %d: %s\n", process,
                     status.ToString().c_str());
      }
      ::_exit(status.ok() ? 0 : 1);
    }
    children.push_back(child);
  }
  // Closing the write ends here lets reading end when process 0 does.
  port.write.reset();
  result.write.reset();
  double rate = 0;
  const bool told = Read(result.read, rate);
  for (const pid_t child : children) {
    if (!told) ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  if (told) return rate;
  return absl::InternalError(absl::StrCat(
      "a job of ", job.processes,
      " processes has told no rate; see its errors on standard error"));
}

}  // namespace troupe::bench

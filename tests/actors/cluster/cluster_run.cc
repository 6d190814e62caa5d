#include "tests/actors/cluster/cluster_run.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/tls/certificates.h"
#include "gtest/gtest.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

base::tls::CertificateFiles MakeCertificates() {
  static int runs = 0;
  const std::string folder = FreshFolder(absl::StrCat("certificates", ++runs));
  base::tls::CertificateOptions options;
  options.now = absl::Now();
  const auto authority = base::tls::Authority::Make(options);
  TROUPE_CHECK(authority.ok(), "an authority can be made");
  TROUPE_CHECK(base::tls::MakePrivateFolder(folder).ok() &&
                   authority->WriteCertificate(folder).ok() &&
                   authority->WriteNode(folder, {"localhost"}, options).ok(),
               "certificates can be written");
  return base::tls::CertificatesIn(folder);
}

JobSpec SpecOf(const JobSpec& spec, const ClusterRun& run, int process,
               const base::tls::CertificateFiles& certificates) {
  JobSpec mine = spec;
  mine.cluster.emplace();
  mine.cluster->process = process;
  mine.cluster->processes = static_cast<int>(run.ranks.size());
  mine.cluster->ranks = run.ranks[process];
  mine.cluster->transport = run.transport;
  mine.cluster->certificates = certificates;
  mine.cluster->join_timeout = absl::Seconds(20);
  return mine;
}

JobObserver* ObserverOf(const ClusterRun& run, int process) {
  return run.observer ? run.observer(process) : nullptr;
}

}  // namespace

std::vector<ProcessEnd> RunInThreads(const JobSpec& spec,
                                     const ClusterRun& run) {
  const base::tls::CertificateFiles certificates = MakeCertificates();
  std::vector<ProcessEnd> ends(run.ranks.size());
  absl::Notification listening;
  int port = 0;
  std::vector<std::thread> threads;
  for (int process = 0; process < static_cast<int>(ends.size()); ++process) {
    threads.emplace_back([&, process] {
      JobSpec mine = SpecOf(spec, run, process, certificates);
      if (process == 0) {
        mine.cluster->on_listening = [&](int at) {
          port = at;
          listening.Notify();
          return absl::OkStatus();
        };
      } else {
        listening.WaitForNotification();
        mine.cluster->master_port = port;
      }
      if (run.edit) run.edit(process, mine);
      ends[process].result = RunJob(mine, ObserverOf(run, process));
      if (process == 0 && !listening.HasBeenNotified()) listening.Notify();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

ChildProcesses::ChildProcesses(const JobSpec& spec, const ClusterRun& run)
    : children_(run.ranks.size()) {
  const base::tls::CertificateFiles certificates = MakeCertificates();
  // Process 0 writes its port there, once for each of the others.
  int ports[2];
  TROUPE_CHECK(::pipe(ports) == 0, "a pipe can be made");
  const int processes = static_cast<int>(children_.size());
  for (int process = 0; process < processes; ++process) {
    int words[2];
    TROUPE_CHECK(::pipe(words) == 0, "a pipe can be made");
    const pid_t pid = ::fork();
    TROUPE_CHECK(pid >= 0, "a process can be forked");
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      JobSpec mine = SpecOf(spec, run, process, certificates);
      if (process == 0) {
        mine.cluster->on_listening = [&](int port) {
          for (int i = 1; i < processes; ++i) {
            if (::write(ports[1], &port, sizeof(port)) != sizeof(port)) {
              return absl::InternalError("the port could not be told");
            }
          }
          return absl::OkStatus();
        };
      } else {
        int& port = mine.cluster->master_port;
        if (::read(ports[0], &port, sizeof(port)) != sizeof(port)) ::_exit(3);
      }
      if (run.edit) run.edit(process, mine);
      const absl::Status status =
          RunJob(mine, ObserverOf(run, process)).status();
      const std::string message(status.message());
      const bool told = ::write(words[1], message.data(), message.size()) ==
                        static_cast<ssize_t>(message.size());
      ::_exit(told ? status.raw_code() : 3);
    }
    ::close(words[1]);
    children_[process].pid = pid;
    children_[process].words = words[0];
  }
  ::close(ports[0]);
  ::close(ports[1]);
}

ChildProcesses::~ChildProcesses() {
  for (Child& child : children_) {
    if (!child.waited) {
      ::kill(child.pid, SIGKILL);
      ::waitpid(child.pid, nullptr, 0);
    }
    ::close(child.words);
  }
}

bool ChildProcesses::WaitStopped(int process) const {
  siginfo_t info = {};
  // WNOWAIT: a child that has ended instead is still there for Wait().
  return ::waitid(P_PID, children_[process].pid, &info,
                  WSTOPPED | WEXITED | WNOWAIT) == 0 &&
         info.si_code == CLD_STOPPED;
}

void ChildProcesses::Continue(int process) const {
  TROUPE_CHECK(::kill(children_[process].pid, SIGCONT) == 0, "it is a child");
}

absl::Status ChildProcesses::Wait(int process) {
  Child& child = children_[process];
  std::string message;
  char buffer[4096];
  for (ssize_t n; (n = ::read(child.words, buffer, sizeof(buffer))) > 0;) {
    message.append(buffer, n);
  }
  int how = 0;
  TROUPE_CHECK(::waitpid(child.pid, &how, 0) == child.pid, "it is a child");
  child.waited = true;
  if (WIFSIGNALED(how)) {
    return absl::AbortedError(absl::StrCat("killed by signal ", WTERMSIG(how)));
  }
  return absl::Status(static_cast<absl::StatusCode>(WEXITSTATUS(how)), message);
}

}  // namespace troupe::actors

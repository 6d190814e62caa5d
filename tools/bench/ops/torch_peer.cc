#include "tools/bench/ops/torch_peer.h"

#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace troupe::bench {

absl::StatusOr<std::unique_ptr<TorchPeer>> TorchPeer::Start(
    const std::string& python, const std::string& script) {
  int to[2], from[2];
  if (pipe(to) != 0 || pipe(from) != 0) {
    return absl::UnavailableError("no pipes for the peer");
  }
  const pid_t pid = fork();
  if (pid < 0) return absl::UnavailableError("no process for the peer");
  if (pid == 0) {
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    for (int fd : {to[0], to[1], from[0], from[1]}) close(fd);
    execlp(python.c_str(), python.c_str(), script.c_str(), nullptr);
    std::perror(python.c_str());
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  return std::unique_ptr<TorchPeer>(
      new TorchPeer(pid, fdopen(to[1], "w"), fdopen(from[0], "r")));
}

TorchPeer::~TorchPeer() {
  std::fclose(to_);  // the peer reads the end of its input and leaves
  std::fclose(from_);
  waitpid(pid_, nullptr, 0);
}

absl::StatusOr<double> TorchPeer::BestNs(const std::string& line,
                                         double seconds) {
  std::fprintf(to_, "%g %s\n", seconds, line.c_str());
  std::fflush(to_);
  double best = 0, median = 0;
  if (std::fscanf(from_, "%lf %lf", &best, &median) != 2) {
    return absl::UnavailableError(
        absl::StrCat("the PyTorch peer gave no time for \"", line, "\""));
  }
  return best;
}

}  // namespace troupe::bench

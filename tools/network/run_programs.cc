#include "tools/network/run_programs.h"

#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/owned_fd.h"

extern char** environ;

namespace troupe::network {
namespace {

constexpr off_t kOutputBytesMax = 2000;

struct Running {
  pid_t pid = 0;
  base::OwnedFd output;  // a file without a name
};

absl::StatusOr<Running> Start(const std::vector<std::string>& program) {
  Running running;
  running.output = base::OwnedFd(::memfd_create("output", MFD_CLOEXEC));
  if (!running.output.valid()) return absl::ErrnoToStatus(errno, "memfd");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_adddup2(&actions, running.output.get(), fd);
  }
  std::vector<std::string> words = {"setpriv", "--pdeathsig", "KILL", "--"};
  words.insert(words.end(), program.begin(), program.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int error = ::posix_spawnp(&running.pid, argv[0], &actions,
                                   /*attrp=*/nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::ErrnoToStatus(error, words[0]);
  return running;
}

std::string OutputOf(const Running& running) {
  const off_t end = ::lseek(running.output.get(), 0, SEEK_END);
  const off_t begin = end > kOutputBytesMax ? end - kOutputBytesMax : 0;
  std::string text(end - begin, '\0');
  const ssize_t got =
      ::pread(running.output.get(), text.data(), text.size(), begin);
  text.resize(got > 0 ? got : 0);
  return std::string(absl::StripAsciiWhitespace(text));
}

}  // namespace

absl::Status RunPrograms(
    const std::vector<std::vector<std::string>>& programs) {
  absl::Status first;
  std::vector<Running> running;
  for (const std::vector<std::string>& program : programs) {
    absl::StatusOr<Running> started = Start(program);
    if (!started.ok()) {
      first = started.status();
      break;
    }
    running.push_back(*std::move(started));
  }
  for (std::size_t i = 0; i < running.size(); ++i) {
    // If one did not start, the others may wait for it for ever.
    if (running.size() < programs.size()) ::kill(running[i].pid, SIGKILL);
    int status = 0;
    ::waitpid(running[i].pid, &status, 0);
    if (!first.ok() || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
      continue;
    }
    first = absl::UnavailableError(absl::StrCat(absl::StrJoin(programs[i], " "),
                                                ": ", OutputOf(running[i])));
  }
  return first;
}

}  // namespace troupe::network

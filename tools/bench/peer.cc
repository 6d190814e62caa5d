#include "tools/bench/peer.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

extern char** environ;

namespace troupe::bench {

absl::StatusOr<std::unique_ptr<Peer>> Peer::Start(
    const std::string& python, const std::string& script,
    const std::vector<std::string>& arguments) {
  for (const std::string& path : {python, script}) {
    if (!std::filesystem::exists(path)) {
      return absl::NotFoundError(absl::StrCat(
          "there is no ", path,
          "; set --python to a Python with PyTorch, and start the benchmark in "
          "the root of the tree"));
    }
  }
  std::vector<std::string> words = {python, script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return StartProgram(std::move(words));
}

absl::StatusOr<std::unique_ptr<Peer>> Peer::StartProgram(
    std::vector<std::string> words) {
  int questions[2];
  int answers[2];
  if (pipe2(questions, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0) {
    return absl::UnavailableError(
        "pipe2() gives no pipe to the peer; raise the limit on open files "
        "(ulimit -n)");
  }
  // Writing to a peer that has ended must fail, not kill this process.
  std::signal(SIGPIPE, SIG_IGN);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, questions[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, answers[1], STDOUT_FILENO);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &actions, /*attrp=*/nullptr,
                                 argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(questions[0]);
  close(answers[1]);
  if (error != 0) {
    close(questions[1]);
    close(answers[0]);
    return absl::UnavailableError(absl::StrCat(
        words[0], " does not start; install it, or correct its path"));
  }
  return std::unique_ptr<Peer>(
      new Peer(pid, fdopen(questions[1], "w"), fdopen(answers[0], "r")));
}

Peer::~Peer() {
  std::fclose(questions_);
  waitpid(pid_, nullptr, 0);
  std::fclose(answers_);
}

absl::StatusOr<double> Peer::Measure(const std::string& question) {
  std::fprintf(questions_, "%s\n", question.c_str());
  std::fflush(questions_);
  char line[256];
  double value = 0;
  if (std::fgets(line, sizeof(line), answers_) == nullptr) {
    return absl::UnavailableError(absl::StrCat("the peer ended at \"", question,
                                               "\"; see its errors above"));
  }
  if (!absl::SimpleAtod(line, &value)) {
    return absl::UnavailableError(
        absl::StrCat("the peer answered \"", line, "\" to \"", question,
                     "\"; it must answer with a number"));
  }
  return value;
}

absl::StatusOr<double> Peer::AskOnce(std::vector<std::string> words) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Peer> peer,
                          StartProgram(std::move(words)));
  return peer->Measure("");
}

absl::StatusOr<double> AskSelfOnce(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   std::filesystem::read_symlink("/proc/self/exe").string());
  return Peer::AskOnce(std::move(arguments));
}

std::string FindScript(const std::string& program, const std::string& path) {
  const std::string runfile = program + ".runfiles/troupe/" + path;
  return std::filesystem::exists(runfile) ? runfile : path;
}

}  // namespace troupe::bench

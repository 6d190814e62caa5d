// Runs code that may end its process.
//
//   std::string text = InChild([] { Hunt(); });   // its output to stderr

#ifndef TESTS_ACTORS_SIM_PLANTED_IN_CHILD_H_
#define TESTS_ACTORS_SIM_PLANTED_IN_CHILD_H_

#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>

namespace troupe {

// Runs `body` in a child process. Returns the text that it has written to its
// standard error before it ended, however it ended: a bug may abort it.
inline std::string InChild(const std::function<void()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  std::fflush(nullptr);  // otherwise the child would write the buffer, too
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    body();
    std::fflush(stderr);
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text;
}

}  // namespace troupe

#endif  // TESTS_ACTORS_SIM_PLANTED_IN_CHILD_H_

// A peer to compare with: a Python script that reads a line from its standard
// input, measures the case that the line names, and answers with one line. Thus
// rounds of ours and of the peer alternate, without the time of start-up.
//
//   auto peer = Peer::Start(python,  // e.g. in a virtual environment
//                           FindScript(argv[0], "tools/bench/comm/peer.py"),
//                           {"--ranks=2"});
//   absl::StatusOr<double> us = (*peer)->Measure("4096 100");
//
// The answer is a number. The peer ends when its input is closed, in the
// destructor. Measure() blocks until the peer answers.

#ifndef TOOLS_BENCH_PEER_H_
#define TOOLS_BENCH_PEER_H_

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace troupe::bench {

class Peer {
 public:
  // Starts a Python script.
  //   kNotFound: no such interpreter or script.
  static absl::StatusOr<std::unique_ptr<Peer>> Start(
      const std::string& python, const std::string& script,
      const std::vector<std::string>& arguments);
  // Starts another program, found in PATH, with its arguments.
  static absl::StatusOr<std::unique_ptr<Peer>> StartProgram(
      std::vector<std::string> words);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Sends the line `question` and returns the answer.
  //   kUnavailable: the peer ended (its errors are on standard error), or its
  //     answer is not a number.
  absl::StatusOr<double> Measure(const std::string& question);
  // Starts a program for one answer, and returns that.
  static absl::StatusOr<double> AskOnce(std::vector<std::string> words);

 private:
  Peer(pid_t pid, std::FILE* questions, std::FILE* answers)
      : pid_(pid), questions_(questions), answers_(answers) {}

  const pid_t pid_;
  std::FILE* const questions_;
  std::FILE* const answers_;
};

// Starts this program again with other arguments, and returns its answer.
absl::StatusOr<double> AskSelfOnce(std::vector<std::string> arguments);

// Returns the path of a data file of the workspace, for a program run by Bazel
// or from the root of the workspace.
std::string FindScript(const std::string& program, const std::string& path);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_PEER_H_

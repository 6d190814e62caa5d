// A peer to compare with: a Python script that waits for a line on its standard
// input, measures what the line asks for, and answers with one line. So rounds
// of ours and of the peer can alternate, and start-up is measured by neither.
//
//   auto peer = Peer::Start(python,  // of a virtual environment, say
//                           FindScript(argv[0], "tools/bench/comm/peer.py"),
//                           {"--ranks=2"});
//   absl::StatusOr<double> us = (*peer)->Measure("4096 100");
//
// The answer is a number. The peer ends when its input does, at destruction.
// Measure() blocks for as long as the peer needs.

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
  // kNotFound: no such interpreter or script.
  static absl::StatusOr<std::unique_ptr<Peer>> Start(
      const std::string& python, const std::string& script,
      const std::vector<std::string>& arguments);
  // Any other program, with its arguments; looked for in PATH.
  static absl::StatusOr<std::unique_ptr<Peer>> StartProgram(
      std::vector<std::string> words);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // kUnavailable: it ended (its errors are on standard error).
  absl::StatusOr<double> Measure(const std::string& question);
  // What a program answers that is started for one question, and ends.
  static absl::StatusOr<double> AskOnce(std::vector<std::string> words);

 private:
  Peer(pid_t pid, std::FILE* questions, std::FILE* answers)
      : pid_(pid), questions_(questions), answers_(answers) {}

  const pid_t pid_;
  std::FILE* const questions_;
  std::FILE* const answers_;
};

// What this program answers in a process of its own, with these arguments.
absl::StatusOr<double> AskSelfOnce(std::vector<std::string> arguments);

// Where a data file of the workspace lies, for a program run by Bazel or from
// the root of the workspace.
std::string FindScript(const std::string& program, const std::string& path);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_PEER_H_

// A PyTorch process that times the same cases, spoken to over two pipes.
//
//   auto peer = *TorchPeer::Start("python3", "tools/bench/ops/torch_ops.py");
//   double ns = *peer->BestNs("linear f 64 784 512", /*seconds=*/0.1);

#ifndef TOOLS_BENCH_OPS_TORCH_PEER_H_
#define TOOLS_BENCH_OPS_TORCH_PEER_H_

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace troupe::bench {

class TorchPeer {
 public:
  //   kUnavailable: the process could not be started.
  static absl::StatusOr<std::unique_ptr<TorchPeer>> Start(
      const std::string& python, const std::string& script);
  ~TorchPeer();  // ends the process
  TorchPeer(const TorchPeer&) = delete;
  TorchPeer& operator=(const TorchPeer&) = delete;

  //   kUnavailable: the peer ended; its words are on stderr.
  absl::StatusOr<double> BestNs(const std::string& line, double seconds);

 private:
  TorchPeer(pid_t pid, std::FILE* to, std::FILE* from)
      : pid_(pid), to_(to), from_(from) {}

  const pid_t pid_;
  std::FILE* const to_;
  std::FILE* const from_;
};

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_OPS_TORCH_PEER_H_

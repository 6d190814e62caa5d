// PyTorch's side of a benchmark of training steps: processes of torch_train.py,
// one for each number of ranks, started when first used.
//
//   TorchTrain torch(argv[0], python);
//   TorchStep step;
//   step.name = "resnet18";
//   step.mode = "compile";
//   absl::StatusOr<double> rate = torch.StepsPerSecond(step, /*seconds=*/2);
//
// Cases have the names and sizes of train_case.h.

#ifndef TOOLS_BENCH_TORCH_TRAIN_H_
#define TOOLS_BENCH_TORCH_TRAIN_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/bench/peer.h"

namespace troupe::bench {

struct TorchStep {
  std::string name;
  std::string precision = "f32";  // "bf16": under autocast
  std::string mode = "eager";     // one of torch_train.py
  int ranks = 1;
};

class TorchTrain {
 public:
  // `program` is argv[0]. `python` has PyTorch; if empty, there is no peer, and
  // the methods that measure must not be called.
  TorchTrain(const std::string& program, std::string python);

  bool is_there() const { return !python_.empty(); }

  // Returns NaN if PyTorch does not run the step in that mode; the reason is on
  // standard error.
  //   kNotFound: there is no such interpreter. kUnavailable: it ended.
  absl::StatusOr<double> StepsPerSecond(const TorchStep& step, double seconds);

  // Starts torch_train.py with "--once=..." and further arguments for one
  // answer, and returns that.
  absl::StatusOr<double> AskOnce(std::vector<std::string> arguments) const;

 private:
  const std::string script_;
  const std::string python_;
  std::map<int, std::unique_ptr<Peer>> peers_;  // key: number of ranks
};

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_TORCH_TRAIN_H_

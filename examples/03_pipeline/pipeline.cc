// Trains one model on a single rank, and cut into two pipeline stages on two
// ranks. The losses have the same bits.
//
//   bazel run //examples/03_pipeline
//
// Fails if any loss differs between the runs.

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "actors/job.h"
#include "base/check.h"
#include "data/synthetic/synthetic.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"

namespace {

using namespace troupe;  // An example may be short.

constexpr int kSteps = 100;

class KeepLosses : public actors::JobObserver {
 public:
  void OnStart(const actors::JobInfo& info) override {
    // Prints the layers of each stage and the order of its actions.
    std::printf("%s", info.plan.ToString().c_str());
  }
  void OnSteps(absl::Span<const actors::StepReport> steps) override {
    for (const actors::StepReport& s : steps) losses.push_back(s.loss);
  }
  std::vector<double> losses;
};

absl::StatusOr<std::vector<double>> Losses(const pipeline::Mesh& mesh,
                                           std::vector<pipeline::Cut> cuts) {
  actors::JobSpec spec;
  TROUPE_ASSIGN_OR_RETURN(spec.train, data::MakeSyntheticDataset({}, "train"));
  // Children: 0 flatten, 1 linear, 2 relu, 3 linear, 4 relu, 5 linear.
  spec.model = [] { return nn::MakeMlp({10, 64, 64, 10}, {}); };
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = nn::SgdOptions{/*lr=*/0.1};
  spec.plan.mesh = mesh;
  spec.plan.cuts = std::move(cuts);
  spec.plan.global_batch_size = 64;
  spec.plan.micro_batch_size = 16;  // four micro-batches per step
  spec.steps = kSteps;
  KeepLosses observer;
  TROUPE_RETURN_IF_ERROR(actors::RunJob(spec, &observer).status());
  return observer.losses;
}

absl::Status Run() {
  TROUPE_ASSIGN_OR_RETURN(
      const std::vector<double> one,
      Losses(pipeline::Mesh(/*dp=*/1, /*pp=*/1), /*cuts=*/{}));
  TROUPE_ASSIGN_OR_RETURN(
      const std::vector<double> two,
      Losses(pipeline::Mesh(/*dp=*/1, /*pp=*/2), /*cuts=*/{3}));
  std::printf("last loss: %.9f on one rank, %.9f on two\n", one.back(),
              two.back());
  if (one.size() != kSteps || one != two) {
    return absl::InternalError("the losses differ");
  }
  if (!(two.back() < one.front())) {
    return absl::InternalError("nothing was learned");
  }
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  }
  return status.ok() ? 0 : 1;
}

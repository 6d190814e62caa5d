// Combines data parallelism and pipeline parallelism in one job: a mesh of two
// replicas with two stages each. Its checkpoint can be resumed on any mesh.
//
//   bazel run //examples/hybrid_mesh
//
// Trains 60 steps on 2 x 2 ranks and saves, then continues to step 120 from
// that checkpoint on 2 x 2, 2 x 1, 1 x 2, 4 x 1 ranks and on one rank. Fails if
// a mesh with two replicas gives other bits, or if another mesh gives losses
// that differ by more than rounding.

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "actors/job.h"
#include "base/check.h"
#include "data/synthetic/synthetic.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "nn/optim/adam.h"
#include "pipeline/schedules/schedules.h"

namespace {

using namespace troupe;  // An example may be short.

constexpr int kHalf = 60;

class KeepLosses : public actors::JobObserver {
 public:
  void OnStart(const actors::JobInfo& info) override {
    std::printf("%s, from step %d on\n", info.plan.mesh.ToString().c_str(),
                static_cast<int>(info.first_step));
    for (const std::string& change : info.plan_changes) {
      if (change.rfind("mesh", 0) == 0) std::printf("  %s\n", change.c_str());
    }
  }
  void OnSteps(absl::Span<const actors::StepReport> steps) override {
    for (const actors::StepReport& s : steps) losses.push_back(s.loss);
  }
  std::vector<double> losses;
};

struct End {
  std::vector<double> losses;
  std::string checkpoint;
};

// Trains up to step `steps`, from checkpoint `from`, or from the start if that
// is empty.
absl::StatusOr<End> Train(int dp, int pp, int steps, const std::string& dir,
                          const std::string& from) {
  actors::JobSpec spec;
  TROUPE_ASSIGN_OR_RETURN(spec.train, data::MakeSyntheticDataset({}, "train"));
  // Children: 0 flatten, 1 linear, 2 relu, 3 linear, 4 relu, 5 linear.
  spec.model = [] { return nn::MakeMlp({10, 64, 64, 10}, {}); };
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = nn::AdamOptions();
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  if (pp > 1) spec.plan.cuts = {3};
  spec.plan.global_batch_size = 64;
  spec.plan.micro_batch_size = 8;
  // Small buckets: each is reduced across the replicas as soon as its last
  // gradient is complete, while the pipeline still drains.
  spec.plan.buckets.first_bucket_bytes = 1 << 10;
  spec.plan.buckets.bucket_bytes = 4 << 10;
  TROUPE_RETURN_IF_ERROR(pipeline::SetSchedule("1f1b", spec.plan));
  spec.steps = steps;
  spec.checkpoint.dir = dir;
  spec.checkpoint.from = from;
  KeepLosses observer;
  TROUPE_ASSIGN_OR_RETURN(const actors::JobResult result,
                          actors::RunJob(spec, &observer));
  return End{observer.losses, result.checkpoint};
}

// Returns the largest relative difference between the losses of two runs.
double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double far = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    far = std::fmax(far, std::fabs(a[i] - b[i]) / std::fabs(a[i]));
  }
  return far;
}

absl::Status Run(const std::string& folder) {
  TROUPE_ASSIGN_OR_RETURN(
      const End half, Train(/*dp=*/2, /*pp=*/2, kHalf, folder + "/half", ""));
  TROUPE_ASSIGN_OR_RETURN(
      const End whole,
      Train(/*dp=*/2, /*pp=*/2, 2 * kHalf, folder + "/2x2", half.checkpoint));
  struct Other {
    int dp, pp;
  };
  for (const Other mesh :
       {Other{2, 1}, Other{1, 2}, Other{4, 1}, Other{1, 1}}) {
    TROUPE_ASSIGN_OR_RETURN(const End other,
                            Train(mesh.dp, mesh.pp, 2 * kHalf,
                                  folder + "/" + std::to_string(mesh.dp) + "x" +
                                      std::to_string(mesh.pp),
                                  half.checkpoint));
    const double far = Distance(whole.losses, other.losses);
    std::printf("  losses differ by %.1e of them from those of dp=2 pp=2\n",
                far);
    // Another number of replicas adds up gradients in another order.
    if (!(mesh.dp == 2 ? far == 0 : far < 1e-4)) {
      return absl::InternalError("other losses than on dp=2 pp=2");
    }
  }
  if (whole.losses.size() != kHalf || half.losses.size() != kHalf) {
    return absl::InternalError("it did not go on from the checkpoint");
  }
  std::printf("loss %.4f, then %.4f, then %.4f\n", half.losses.front(),
              half.losses.back(), whole.losses.back());
  if (whole.losses.back() < half.losses.front()) return absl::OkStatus();
  return absl::InternalError("nothing was learned");
}

}  // namespace

int main() {
  char folder[] = "/tmp/hybrid_mesh_XXXXXX";
  if (mkdtemp(folder) == nullptr) {
    std::perror("mkdtemp");
    return 1;
  }
  const absl::Status status = Run(folder);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::filesystem::remove_all(folder);
  return status.ok() ? 0 : 1;
}

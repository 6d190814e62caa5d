// A training program with a main() of its own, which runs by itself or under
// any launcher: torchrun, Slurm, Open MPI, Kubernetes, `trainer launch`.
//
//   bazel build //examples/any_launcher //tools:trainer
//   cd bazel-bin/examples/any_launcher
//   ./any_launcher --ranks=2
//   ../../tools/trainer launch --nproc-per-node=2 --program=./any_launcher
//
// By itself it trains with all ranks in one process, and otherwise with as many
// ranks as there are processes, or --ranks of them. Both print the same losses.

#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "actors/job.h"
#include "actors/launchers/cluster_from_environment.h"
#include "base/check.h"
#include "data/synthetic/synthetic.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"

ABSL_FLAG(int, ranks, 0, "ranks of the job; 0: one for each process");
ABSL_FLAG(int, steps, 40, "steps to train");

namespace {

using namespace troupe;  // An example may be short.

class PrintLosses : public actors::JobObserver {
 public:
  void OnSteps(absl::Span<const actors::StepReport> steps) override {
    for (const actors::StepReport& s : steps) {
      if (s.step % 10 == 0) {
        std::printf("step %d: loss %.17g\n", static_cast<int>(s.step), s.loss);
      }
    }
  }
};

absl::Status Run() {
  TROUPE_ASSIGN_OR_RETURN(const actors::Placement placement,
                          actors::PlacementFromEnvironment());
  std::fprintf(stderr, "%s\n", placement.ToString().c_str());
  const int ranks = absl::GetFlag(FLAGS_ranks);
  actors::JobSpec spec;
  spec.plan.mesh =
      pipeline::Mesh(/*dp=*/ranks > 0 ? ranks : placement.processes);
  TROUPE_ASSIGN_OR_RETURN(spec.cluster,
                          actors::ClusterOf(placement, spec.plan.mesh.size()));

  TROUPE_ASSIGN_OR_RETURN(spec.train, data::MakeSyntheticDataset({}, "train"));
  TROUPE_ASSIGN_OR_RETURN(spec.test, data::MakeSyntheticDataset({}, "test"));
  spec.model = [] { return nn::MakeMlp({10, 64, 10}, {}); };
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = nn::SgdOptions{/*lr=*/0.05, /*momentum=*/0.9};
  spec.plan.global_batch_size = 64;
  spec.steps = absl::GetFlag(FLAGS_steps);
  PrintLosses printer;
  const bool prints = placement.process == 0;
  TROUPE_ASSIGN_OR_RETURN(const actors::JobResult result,
                          actors::RunJob(spec, prints ? &printer : nullptr));
  if (!prints) return absl::OkStatus();
  std::printf("test loss %.17g, accuracy %.4f\n", result.evaluation.loss,
              result.evaluation.accuracy);
  if (result.evaluation.accuracy > 0.5) return absl::OkStatus();
  return absl::InternalError("nothing was learned");
}

}  // namespace

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "any_launcher: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

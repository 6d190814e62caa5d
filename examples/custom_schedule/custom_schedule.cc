// Defines a custom pipeline schedule and trains with it: eager 1F1B (Zhuang et
// al. 2022, arXiv:2211.05322, sec. 4). Its stages run twice as many forwards
// ahead as those of 1F1B, which hides the time of messages.
//
//   bazel run //examples/custom_schedule
//
// Prints the tables and the simulated step. Fails if the step is not shorter
// than that of 1F1B when messages take time, if it holds more activations than
// the paper says, or if training gives other bits than on one rank.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "actors/job.h"
#include "base/check.h"
#include "data/synthetic/synthetic.h"
#include "nn/modules/lambda.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/custom.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "pipeline/schedules/schedules.h"
#include "pipeline/schedules/step_simulation.h"
#include "pipeline/table/placement.h"

namespace {

using namespace troupe;  // An example may be short.
using pipeline::ActionKind, pipeline::StepTable;

constexpr int kStages = 4, kMicroBatches = 12, kSteps = 30;

// Returns the forwards and backwards of a stage; the planner adds transfers and
// reductions.
StepTable EagerOneForwardOneBackward(int micro_batches, int stage, int stages) {
  const int ahead = std::min(micro_batches, 2 * (stages - 1 - stage));
  StepTable table;
  for (int m = 0; m < ahead; ++m) {
    table.actions.push_back({ActionKind::kForward, m, {}});
  }
  for (int m = 0; m < micro_batches; ++m) {
    if (m + ahead < micro_batches) {
      table.actions.push_back({ActionKind::kForward, m + ahead, {}});
    }
    table.actions.push_back({ActionKind::kBackward, m, {}});
  }
  return table;
}

// Simulates a step in which a backward takes as long as two forwards, and a
// message half as long as one.
absl::StatusOr<pipeline::SimulatedStep> Cost(const pipeline::Tables& tables) {
  pipeline::StepCosts costs;
  costs.stages.assign(kStages, {/*forward=*/1, /*inputs=*/1, /*weights=*/1});
  costs.transfer = 0.5;
  return SimulateStep(tables, pipeline::LoopedPlacement(kStages, /*chunks=*/1),
                      costs, pipeline::Dispatch::kStrict);
}

absl::Status CompareWith1F1B() {
  pipeline::Tables eager;
  for (int stage = 0; stage < kStages; ++stage) {
    eager.push_back(EagerOneForwardOneBackward(kMicroBatches, stage, kStages));
    std::printf("stage %d: %s\n", stage, eager.back().ToString().c_str());
  }
  TROUPE_ASSIGN_OR_RETURN(const pipeline::SimulatedStep step, Cost(eager));
  TROUPE_ASSIGN_OR_RETURN(
      const pipeline::Tables plain,
      pipeline::OneForwardOneBackward(kStages, kMicroBatches));
  TROUPE_ASSIGN_OR_RETURN(const pipeline::SimulatedStep other, Cost(plain));
  std::printf("%s", DrawStep(step, /*columns=*/78).c_str());
  std::printf("eager: %.1f forwards long, at most %d activations\n",
              step.seconds, step.activations_max());
  std::printf("1F1B:  %.1f forwards long, at most %d activations\n",
              other.seconds, other.activations_max());
  if (!(step.seconds < other.seconds)) {
    return absl::InternalError("it is not shorter than 1F1B");
  }
  for (int stage = 0; stage < kStages; ++stage) {
    if (step.ranks[stage].activations_max > 2 * (kStages - stage) - 1) {
      return absl::InternalError("a stage holds more than the paper says");
    }
  }
  return absl::OkStatus();
}

// Returns an op with a hand-written backward: y = x / (1 + |x|).
nn::ops::CustomOp Softsign() {
  nn::ops::CustomOp op;
  op.name = "softsign";
  op.forward = [](nn::Kernels&, const nn::Tensor& x, nn::Tensor& y) {
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const float v = x.data<float>()[i];
      y.data<float>()[i] = v / (1 + std::fabs(v));
    }
    return absl::OkStatus();
  };
  op.backward = [](nn::Kernels&, const nn::ops::CustomGradient& g,
                   nn::Tensor& dx) {
    for (std::int64_t i = 0; i < dx.numel(); ++i) {
      const float s = 1 + std::fabs(g.x.data<float>()[i]);
      dx.data<float>()[i] = g.dy.data<float>()[i] / (s * s);
    }
    return absl::OkStatus();
  };
  return op;
}

// Run() cuts the model before children 2, 3 and 4, so that the third stage is
// only the function.
std::unique_ptr<nn::Module> MakeModel() {
  auto model = std::make_unique<nn::Sequential>();
  model->Append<nn::Linear>(10, 32);
  model->Append<nn::ReLU>();
  model->Append<nn::Linear>(32, 32);
  model->Append<nn::Lambda>(
      [op = Softsign()](nn::Context& ctx, const nn::Tensor& x) {
        return nn::ops::Custom(ctx, op, x);
      });
  model->Append<nn::Linear>(32, 10);
  return model;
}

class KeepLosses : public actors::JobObserver {
 public:
  void OnSteps(absl::Span<const actors::StepReport> steps) override {
    for (const actors::StepReport& s : steps) losses.push_back(s.loss);
  }
  std::vector<double> losses;
};

absl::StatusOr<std::vector<double>> Train(const pipeline::Mesh& mesh,
                                          std::vector<pipeline::Cut> cuts) {
  actors::JobSpec spec;
  TROUPE_ASSIGN_OR_RETURN(spec.train, data::MakeSyntheticDataset({}, "train"));
  spec.model = MakeModel;
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = nn::SgdOptions{/*lr=*/0.1};
  spec.plan.mesh = mesh;
  spec.plan.cuts = std::move(cuts);
  spec.plan.global_batch_size = 8 * kMicroBatches;
  spec.plan.micro_batch_size = 8;
  if (mesh.pp() > 1) {
    spec.plan.schedule = [](const pipeline::Mesh& mesh, int stage,
                            int micro_batches) {
      return EagerOneForwardOneBackward(micro_batches, stage, mesh.pp());
    };
  }
  spec.steps = kSteps;
  KeepLosses observer;
  TROUPE_RETURN_IF_ERROR(actors::RunJob(spec, &observer).status());
  return observer.losses;
}

absl::Status Run() {
  TROUPE_RETURN_IF_ERROR(CompareWith1F1B());
  TROUPE_ASSIGN_OR_RETURN(const std::vector<double> one,
                          Train(pipeline::Mesh(), /*cuts=*/{}));
  TROUPE_ASSIGN_OR_RETURN(
      const std::vector<double> four,
      Train(pipeline::Mesh(/*dp=*/1, /*pp=*/kStages), {2, 3, 4}));
  std::printf("last loss: %.9f on one rank, %.9f on four stages\n", one.back(),
              four.back());
  if (one.size() != kSteps || one != four) {
    return absl::InternalError("the losses differ");
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

// Trains a GPT in a pipeline of two ranks, under one schedule after the other.
// Shows cuts balanced by FLOPs, dropout, evaluation, and the simulation of a
// step before it runs.
//
//   bazel run //examples/pipeline_gpt
//
// Fails if a loss of any schedule, in training or evaluation, differs by a bit
// from that of one rank. The bits are equal because dropout is drawn by sample
// and layer, not by stage, and gradients add up in the order of micro-batches.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "actors/job.h"
#include "base/check.h"
#include "base/files/file_system.h"
#include "data/text/text_splits.h"
#include "nn/models/gpt2.h"
#include "nn/ops/loss.h"
#include "nn/optim/adam.h"
#include "pipeline/balance.h"
#include "pipeline/schedules/schedules.h"

namespace {

using namespace troupe;  // An example may be short.

constexpr int kSteps = 12, kContext = 32, kMicroBatch = 2, kMicroBatches = 8;

class KeepLosses : public actors::JobObserver {
 public:
  void OnSteps(absl::Span<const actors::StepReport> steps) override {
    for (const actors::StepReport& s : steps) losses.push_back(s.loss);
  }
  void OnEvaluation(const actors::EvaluationReport& evaluation) override {
    losses.push_back(evaluation.loss);
  }
  std::vector<double> losses;
};

absl::StatusOr<actors::JobSpec> MakeJob() {
  data::TextOptions text;
  text.tokenizer = "chars";
  text.context = kContext;
  base::PosixFileSystem files;
  // An empty path selects the text that is built into Troupe.
  TROUPE_ASSIGN_OR_RETURN(const data::TextSplits splits,
                          data::OpenText(files, /*path=*/"", text,
                                         {/*val_fraction=*/0.02, /*seed=*/0}));
  nn::Gpt2Options gpt;
  gpt.layers = 4;
  gpt.heads = 4;
  gpt.width = 32;
  gpt.context = kContext;
  gpt.vocab_size = splits.tokenizer->vocab_size();
  gpt.dropout = 0.1;
  gpt.attention_dropout = 0.1;
  gpt.tie_head = false;
  actors::JobSpec spec;
  spec.train = splits.train;
  spec.test = splits.test;
  spec.model = [gpt] { return nn::MakeGpt2(gpt).value(); };
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = nn::AdamOptions{/*lr=*/3e-3};
  spec.plan.global_batch_size = kMicroBatch * kMicroBatches;
  spec.plan.micro_batch_size = kMicroBatch;
  spec.steps = kSteps;
  return spec;
}

// Cuts the model into as many stages as `schedule` has on two ranks, and prints
// the simulated step.
absl::Status MakePipeline(const std::string& schedule, actors::JobSpec& spec) {
  const nn::TensorSpec input = {{kMicroBatch, kContext}, nn::DType::kI64};
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  if (schedule == "interleaved_1f1b") spec.plan.virtual_stages = 2;
  TROUPE_RETURN_IF_ERROR(pipeline::SetSchedule(schedule, spec.plan));
  const int stages = static_cast<int>(spec.plan.placement.size());
  TROUPE_ASSIGN_OR_RETURN(
      spec.plan.cuts, pipeline::BalanceCuts(spec.model, input, nn::Device(),
                                            stages, pipeline::Balance::kFlops));
  pipeline::Tables tables;
  for (int pp = 0; pp < spec.plan.mesh.pp(); ++pp) {
    tables.push_back(
        spec.plan.schedule(spec.plan.mesh, pp, spec.plan.MicroBatches()));
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> begins,
                          pipeline::ResolveCuts(spec.model, spec.plan.cuts));
  TROUPE_ASSIGN_OR_RETURN(
      const pipeline::StepCosts costs,
      pipeline::EstimateCosts(spec.model, begins, input, nn::Device()));
  TROUPE_ASSIGN_OR_RETURN(const pipeline::SimulatedStep step,
                          SimulateStep(tables, spec.plan.placement, costs,
                                       pipeline::Dispatch::kArrival));
  std::printf("%s: stages begin at", schedule.c_str());
  for (const std::string& path : begins) std::printf(" %s", path.c_str());
  std::printf("; bubble %.1f %%, at most %d activations a rank\n%s",
              100 * step.bubble, step.activations_max(),
              DrawStep(step, /*columns=*/78).c_str());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> Train(const actors::JobSpec& spec) {
  KeepLosses observer;
  TROUPE_RETURN_IF_ERROR(actors::RunJob(spec, &observer).status());
  return observer.losses;
}

absl::Status Run() {
  TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec job, MakeJob());
  TROUPE_ASSIGN_OR_RETURN(const std::vector<double> one, Train(job));
  if (one.size() != kSteps + 1) {
    return absl::InternalError("not a loss for each step and the evaluation");
  }
  for (const char* schedule :
       {"gpipe", "1f1b", "zb_h1", "interleaved_1f1b", "zb_v"}) {
    actors::JobSpec spec = job;
    TROUPE_RETURN_IF_ERROR(MakePipeline(schedule, spec));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<double> two, Train(spec));
    if (one != two) {
      return absl::InternalError(std::string(schedule) + ": other losses");
    }
  }
  std::printf("loss %.6f, then %.6f; of the test text %.6f: in all of them\n",
              one.front(), one[kSteps - 1], one.back());
  if (one[kSteps - 1] < one.front()) return absl::OkStatus();
  return absl::InternalError("nothing was learned");
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

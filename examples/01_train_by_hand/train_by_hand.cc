// Runs a training step without any actor: model, tape, backward, update. The
// actors run the same pieces (actors/engine/step_runner.h).
//
//   bazel run //examples/01_train_by_hand
//
// Prints the loss every 50 steps and fails if it does not fall below 0.5. With
// ten classes, random guesses have a loss of log(10) = 2.3.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/check.h"
#include "data/batch_source.h"
#include "data/synthetic/synthetic.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/context.h"
#include "nn/autograd/tape.h"
#include "nn/kernels/open_kernels.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"

namespace {

using namespace troupe;  // An example may be short.

constexpr int kSteps = 400;
constexpr int kBatch = 64;

// Ignores when each gradient is complete. The ranks of a job use these calls to
// start reductions early.
class NoSink : public nn::GradientSink {
 public:
  void GradientComplete(nn::Parameter&) override {}
  void LastReaderDone(nn::Parameter&) override {}
};

// Runs one forward, one backward and one update. Returns the mean loss of the
// batch.
absl::StatusOr<double> Step(nn::Module& model, const data::Batch& batch,
                            nn::Kernels& kernels, nn::ParameterArena& arena,
                            nn::Sgd& sgd, int step) {
  arena.BeginStep();
  nn::Tape tape;
  nn::Context ctx(kernels, &tape);
  const nn::Tensor loss = nn::ops::SoftmaxCrossEntropy(
      ctx, model(ctx, batch.inputs), batch.targets);
  if (!ctx.ok()) return ctx.status();

  NoSink sink;
  nn::BackwardPass backward(tape, kernels, sink,
                            nn::BackwardPass::Mode::kWhole);
  backward.Seed(loss);
  for (bool more = true; more;) {
    TROUPE_ASSIGN_OR_RETURN(more, backward.Next());
  }

  // A loss is a sum and a count: the update divides the gradient once.
  const double sum = loss.data<double>()[nn::ops::kLossSum];
  const double count = loss.data<double>()[nn::ops::kLossCount];
  nn::StepScalars scalars;
  sgd.FillScalars(step, scalars);
  scalars.loss_count = count;
  TROUPE_RETURN_IF_ERROR(
      sgd.Update(kernels, nn::HostScalars(scalars, kernels.allocator()), arena,
                 /*bucket=*/0));
  return sum / count;
}

absl::Status Run() {
  nn::CachingAllocator allocator;
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<nn::Kernels> kernels,
                          nn::OpenKernels(nn::Device(), {}));
  TROUPE_ASSIGN_OR_RETURN(data::DatasetPtr train,
                          data::MakeSyntheticDataset({}, "train"));
  data::SamplerOptions sampler;
  sampler.global_batch_size = kBatch;
  TROUPE_ASSIGN_OR_RETURN(
      data::BatchSource source,
      data::BatchSource::Create(train, sampler,
                                {/*rank=*/0, /*world=*/1, kBatch}, allocator));

  // The model declares its parameters; the arena allocates their memory.
  const std::unique_ptr<nn::Sequential> model = nn::MakeMlp({10, 64, 10}, {});
  TROUPE_ASSIGN_OR_RETURN(
      std::unique_ptr<nn::ParameterArena> arena,
      nn::ParameterArena::Create({model->Parameters()}, {}, allocator));
  TROUPE_RETURN_IF_ERROR(arena->Initialize(/*seed=*/1));
  nn::SgdOptions options;
  options.lr = 0.1;
  options.momentum = 0.9;
  nn::Sgd sgd(options);
  TROUPE_RETURN_IF_ERROR(sgd.Attach(*arena));

  double loss = 0;
  std::vector<data::Batch> batches;
  for (int step = 0; step < kSteps; ++step) {
    TROUPE_RETURN_IF_ERROR(source.Next(batches));
    TROUPE_ASSIGN_OR_RETURN(
        loss, Step(*model, batches[0], *kernels, *arena, sgd, step));
    if (step % 50 == 0) std::printf("step %d: loss %.4f\n", step, loss);
  }
  std::printf("step %d: loss %.4f\n", kSteps, loss);
  if (!(loss < 0.5)) return absl::InternalError("the loss is not below 0.5");
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

// ResNet-50 in two halves, each on a rank, in a loop of one's own: PyTorch's
// tutorial "Single-Machine Model Parallel Best Practices". First one half works
// after the other, then both at once on micro-batches; both loops are timed and
// profiled. pipeline_resnet50.py is the same with PyTorch, with 63 lines,
// blank lines and comments aside.
//
//   bazel run //examples/pipeline_resnet50
//   ... -- 128 120          height and width of an image, images of a batch
//   python3 examples/pipeline_resnet50/timeline.py FOLDER   draws the timelines

#include <cstdlib>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "nn/models/resnet.h"
#include "nn/ops/loss.h"
#include "troupe/troupe.h"

using namespace troupe;

constexpr int kSteps = 6, kClasses = 1000;

// Trains on one batch, and returns the seconds of a step.
double Train(Rank& rank, const Shape& batch, int micro_batches) {
  PipelineParallel model(rank, [] { return nn::MakeResNet(50, {}).value(); },
                         {/*cuts=*/{"layer3"}, micro_batches, batch, "gpipe"});
  Sgd sgd(model, {/*lr=*/0.01});
  ProfilerOptions cycle;
  cycle.wait = 2, cycle.warmup = 1, cycle.active = 2, cycle.repeat = 1;
  Profiler profiler(rank, cycle,
                    absl::StrCat("pipeline_resnet50_", micro_batches));
  Var images = rank.Randn(batch);
  Var labels = rank.Randint(0, kClasses, {batch[0]});
  double first = 0, loss = 0;
  absl::Time begin;
  for (int step = 0; step < kSteps; ++step) {
    if (step == 1) begin = absl::Now();  // after the first one
    sgd.ZeroGrad();
    loss = model.Run(images, labels, nn::ops::CrossEntropyLoss());
    sgd.Step();
    profiler.Step();
    if (step == 0) first = loss;
  }
  if (!(loss < first)) throw std::runtime_error("it has not learnt");
  rank.Log("%s", profiler.Table());
  return absl::ToDoubleSeconds(absl::Now() - begin) / (kSteps - 1);
}

void Run(Rank& rank, int image, int batch) {
  const Shape images = {batch, image, image, 3};
  const double sequential = Train(rank, images, /*micro_batches=*/1);
  const double pipelined = Train(rank, images, /*micro_batches=*/4);
  rank.Log("one after the other: %.3f s a step\npipelined: %.3f s a step\n",
           sequential, pipelined);
}

int main(int argc, char** argv) {
  const int image = argc == 3 ? std::atoi(argv[1]) : 64;
  const int batch = argc == 3 ? std::atoi(argv[2]) : 8;
  SpawnOptions options;
  options.ranks = 2, options.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  return Main([=](Rank& rank) { Run(rank, image, batch); }, options);
}

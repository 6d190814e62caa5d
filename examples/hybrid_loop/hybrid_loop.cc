// Data parallelism over a model in two parts, in a loop of one's own: two
// replicas, each a pipeline of two ranks, as at the end of PyTorch's tutorial
// "Getting Started with Distributed Data Parallel". hybrid_loop.py is the same
// with PyTorch, with 45 lines, blank lines and comments aside.
//
//   bazel run //examples/hybrid_loop

#include <stdexcept>

#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "troupe/troupe.h"

using namespace troupe;

constexpr int kSteps = 20, kBatch = 20;

void Run(Rank& rank) {
  PipelineParallel model(rank,
                         [] {
                           return nn::MakeMlp({10, 10, 5}, {});
                         },
                         {/*cuts=*/{"3"}, /*micro_batches=*/4, {kBatch, 10}});
  Sgd sgd(model, {/*lr=*/0.1});
  // Each replica has a batch of its own.
  Var x = rank.Randn({kBatch, 10});
  Var y = rank.Randn({kBatch, 5});
  double first = 0, loss = 0;
  for (int step = 0; step < kSteps; ++step) {
    sgd.ZeroGrad();
    loss = model.Run(x, y, nn::ops::MeanSquaredError);
    sgd.Step();
    if (step == 0) first = loss;
  }
  if (!(loss < first)) throw std::runtime_error("it has not learnt");
  const Var all = rank.Axis("dp").AllGather(model.Parameters()[0]->value);
  if (nn::Amax(nn::Abs(all[0] - all[1])).item() != 0) {
    throw std::runtime_error("the replicas differ");
  }
  rank.Log("loss %.4f, then %.4f; the replicas are equal\n", first, loss);
}

int main() {
  SpawnOptions options;
  options.ranks = 4, options.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
  return Main(Run, options);
}

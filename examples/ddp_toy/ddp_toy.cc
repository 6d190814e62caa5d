// A toy model under DistributedDataParallel, with a checkpoint of rank 0 that
// all ranks load: PyTorch's tutorial "Getting Started with Distributed Data
// Parallel". ddp_toy.py is the same with PyTorch, with 41 lines, blank
// lines and comments aside.
//
//   bazel run //examples/ddp_toy

#include <cstdio>
#include <stdexcept>
#include <string>

#include "troupe/troupe.h"

using namespace troupe;

struct ToyModel : nn::Net {
  nn::Linear& net1 = Add<nn::Linear>("net1", 10, 10);
  nn::Linear& net2 = Add<nn::Linear>("net2", 10, 5);
  Var Forward(Var x) override { return net2(net1(x).Relu()); }
};

void Run(Rank& rank) {
  const std::string path = "ddp_toy.safetensors";
  auto model = rank.Make<ToyModel>();
  DDP ddp(model);
  Sgd sgd(ddp, {/*lr=*/0.001});
  if (rank.number() == 0) Save(ddp, path);
  Barrier(rank);
  Load(ddp, path);
  Var loss =
      nn::MeanSquaredError(ddp(rank.Randn({20, 10})), rank.Randn({20, 5}));
  loss.Backward();
  sgd.Step();
  Barrier(rank);
  if (rank.number() == 0) std::remove(path.c_str());
  // Every rank had other data, and all have the same parameters.
  const Var all = rank.world().AllGather(model->net1.weight().value);
  if (nn::Amax(nn::Abs(all[0] - all[1])).item() != 0) {
    throw std::runtime_error("the replicas differ");
  }
  rank.Log("the replicas are equal after a step\n");
}

int main() { return Main(Run, {/*ranks=*/2}); }

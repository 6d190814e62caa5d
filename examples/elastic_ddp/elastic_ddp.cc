// A torchrun script: DistributedDataParallel in as many processes as a launcher
// starts, on one host or several. elastic_ddp.py is the same with PyTorch, with
// 29 lines, blank lines and comments aside.
//
//   bazel build //examples/elastic_ddp //tools:trainer
//   cd bazel-bin
//   tools/trainer certs --dir=certs --hosts=n1,n2
//   L="tools/trainer launch --nnodes=2 --master=n1:29400 --nproc-per-node=2"
//   P=--program=examples/elastic_ddp/elastic_ddp
//   $L --node-rank=0 --certs=certs/n1 $P            # on n1
//   $L --node-rank=1 --certs=certs/n2 $P            # on n2

#include <stdexcept>

#include "troupe/troupe.h"

using namespace troupe;

struct ToyModel : nn::Net {
  nn::Linear& net1 = Add<nn::Linear>("net1", 10, 10);
  nn::Linear& net2 = Add<nn::Linear>("net2", 10, 5);
  Var Forward(Var x) override { return net2(net1(x).Relu()); }
};

void Run(Rank& rank) {
  rank.Print("starts, one of %d\n", rank.size());
  auto model = rank.Make<ToyModel>();
  DDP ddp(model);
  Sgd sgd(ddp, {/*lr=*/0.001});
  nn::MeanSquaredError(ddp(rank.Randn({20, 10})), rank.Randn({20, 5}))
      .Backward();
  sgd.Step();
  Var first = Var(rank.context(), model->net1.weight().value) * 1;
  rank.world().Broadcast(first, /*root=*/0);
  const Var mine(rank.context(), model->net1.weight().value);
  if (Amax(Abs(first - mine)).item() != 0) {
    throw std::runtime_error("the replicas differ");
  }
  rank.Print("has the parameters of rank 0\n");
}

int main() { return Main(Run, {/*ranks=*/0}); }

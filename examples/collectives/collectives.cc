// Every collective on four ranks, and what each rank has after it: the
// collectives of PyTorch's tutorial "Writing Distributed Applications with
// PyTorch". collectives.py is the same with PyTorch, with 49 lines, blank lines
// and comments aside.
//
//   bazel run //examples/collectives
//
// The same four ranks in two processes (torchrun starts them, too, with
// certificates: docs/launching.md):
//
//   P=bazel-bin/examples/collectives/collectives
//   trainer launch --nproc-per-node=2 --program=$P

#include <stdexcept>
#include <string>

#include "troupe/troupe.h"

using namespace troupe;

// Ends the program unless all elements of the tensor have the value.
void Expect(const Var& tensor, double value, const std::string& what) {
  if (nn::Amin(tensor).item() == value && nn::Amax(tensor).item() == value) {
    return;
  }
  throw std::runtime_error(what + " has other values");
}

void Run(Rank& rank) {
  Group& world = rank.world();
  const int n = rank.size(), r = rank.number(), last = n - 1;

  Var tensor = rank.Full({2}, r + 1);
  world.AllReduce(tensor, ReduceOp::kSum);
  Expect(tensor, n * (n + 1) / 2, "all_reduce");

  tensor = rank.Full({2}, r);
  world.Broadcast(tensor, /*root=*/last);
  Expect(tensor, last, "broadcast");

  tensor = rank.Full({2}, r);
  world.Reduce(tensor, /*root=*/0, ReduceOp::kMax);
  Expect(tensor, r == 0 ? last : r, "reduce");

  Var rows = world.AllGather(rank.Full({2}, r));
  Expect(rows[last], last, "all_gather");

  rows = world.Gather(rank.Full({2}, r), /*root=*/0);
  if (r == 0) Expect(rows[1], 1, "gather");

  tensor = rank.Zeros({2});
  world.Scatter(rank.Full({n, 2}, 7), tensor, /*root=*/0);
  Expect(tensor, 7, "scatter");

  tensor = world.ReduceScatter(rank.Full({n, 2}, r));
  Expect(tensor, n * last / 2, "reduce_scatter");

  rows = world.AllToAll(rank.Full({n, 1}, r));
  Expect(rows[last], last, "all_to_all");

  // A group of some of the ranks, and a reduction that goes on meanwhile.
  Var others = rank.Ones({1000});
  Work work = world.StartAllReduce(others);
  if (r < 2) {
    tensor = rank.Ones({1});
    rank.NewGroup({0, 1}).AllReduce(tensor);
    Expect(tensor, 2, "all_reduce in a group");
  }
  work.Wait();
  Expect(others, n, "all_reduce beside it");

  Barrier(rank);
  rank.Log("all collectives are right on %d ranks\n", n);
}

int main() {
  SpawnOptions options;
  options.ranks = 4;
  return Main(Run, options);
}

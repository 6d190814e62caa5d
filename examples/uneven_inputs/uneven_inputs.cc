// Two ranks with different numbers of inputs: PyTorch's tutorial "Distributed
// Training with Uneven Inputs Using the Join Context Manager", with an
// optimizer. The Python has 31 lines, blank lines and comments aside.
//
//   bazel run //examples/uneven_inputs

#include <cmath>
#include <stdexcept>

#include "troupe/troupe.h"

using namespace troupe;

constexpr int kInputs = 5;

void Run(Rank& rank) {
  auto model = rank.Make<nn::Linear>(1, 1);
  DDP ddp(model);
  Sgd sgd(ddp, {/*lr=*/0.01});
  const Var bias(rank.context(), ddp.Parameters()[1]->value);
  const double before = bias.item();
  int inputs = 0;
  {
    auto joined = ddp.Join();
    // Rank 1 has one input more than rank 0.
    for (; inputs < kInputs + rank.number(); ++inputs) {
      sgd.ZeroGrad();
      nn::Sum(ddp(rank.Ones({1, 1}))).Backward();
      sgd.Step();
    }
  }
  rank.Print("has used all %d of its inputs\n", inputs);
  // Rank 0 has made the sixth step, too, by half the gradient of rank 1.
  const double moved = before - bias.item();
  if (sgd.steps() != 6 || std::abs(moved - 0.01 * 5.5) > 1e-6) {
    throw std::runtime_error("the replicas have not made the same steps");
  }
  rank.Log("both ranks have made %d steps\n", sgd.steps());
}

int main() { return Main(Run, {/*ranks=*/2}); }

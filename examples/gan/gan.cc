// A generative adversarial network on two ranks: two models, two optimizers,
// and gradients through the discriminator into the generator, in the loop of
// PyTorch's tutorial "DCGAN". It learns to draw numbers of mean 4 and deviation
// 0.5. gan.py is the same with PyTorch, with 53 lines, blank lines and comments
// aside.
//
//   bazel run //examples/gan

#include <cmath>
#include <stdexcept>

#include "troupe/troupe.h"

using namespace troupe;

constexpr int kBatch = 64, kNoise = 4, kSteps = 600;

struct Net : nn::Net {
  explicit Net(int inputs) : hidden(Add<nn::Linear>("hidden", inputs, 32)) {}
  nn::Linear& hidden;
  nn::Linear& out = Add<nn::Linear>("out", 32, 1);
  Var Forward(Var x) override { return out(hidden(x).Relu()); }
};

void Run(Rank& rank) {
  auto generator = rank.Make<Net>(kNoise), discriminator = rank.Make<Net>(1);
  DDP net_g(generator), net_d(discriminator);
  Adam adam_g(net_g, {/*lr=*/0.005, /*beta1=*/0.5});
  Adam adam_d(net_d, {/*lr=*/0.005, /*beta1=*/0.5});
  const Var real_label = rank.Ones({kBatch, 1});
  const Var fake_label = rank.Zeros({kBatch, 1});
  for (int step = 0; step < kSteps; ++step) {
    // The discriminator, on real samples and on the generator's.
    adam_d.ZeroGrad();
    Var real = 4 + 0.5 * rank.Randn({kBatch, 1});
    Var fake = net_g(rank.Randn({kBatch, kNoise})).Detached();
    Var loss_d = nn::BceWithLogits(net_d(real), real_label) +
                 nn::BceWithLogits(net_d(fake), fake_label);
    loss_d.Backward();
    adam_d.Step();
    // The generator, through the discriminator.
    adam_g.ZeroGrad();
    Var drawn = net_g(rank.Randn({kBatch, kNoise}));
    Var loss_g = nn::BceWithLogits(net_d(drawn), real_label);
    loss_g.Backward();
    adam_g.Step();
    if (step % 100 == 0) {
      rank.Log(
          "step %d: loss of the discriminator %.3f, of the generator %.3f\n",
          step, loss_d.item(), loss_g.item());
    }
  }
  auto no_grad = rank.NoGrad();
  Var mean = nn::Mean(net_g(rank.Randn({1000, kNoise})));
  AllReduce(mean, ReduceOp::kAvg);
  rank.Log("the generator's numbers have mean %.2f\n", mean.item());
  if (!(std::abs(mean.item() - 4) < 0.6)) {
    throw std::runtime_error("it has not learnt");
  }
}

int main() { return Main(Run, {/*ranks=*/2}); }

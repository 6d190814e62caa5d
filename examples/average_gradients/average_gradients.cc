// Distributed training by hand: gradients averaged after each backward, as
// PyTorch's tutorial "Writing Distributed Applications with PyTorch" does.
// average_gradients.py is the same with PyTorch, on MNIST, with 40 lines, blank
// lines and comments aside.
//
//   bazel run //examples/average_gradients

#include <stdexcept>

#include "data/registry.h"
#include "nn/models/models.h"
#include "troupe/troupe.h"

using namespace troupe;

void Run(Rank& rank) {
  data::DatasetOptions glyphs;
  glyphs.kind = "glyphs";
  DataLoader loader(rank, data::OpenDataset(glyphs)->train,
                    {/*batch_size=*/128 / rank.size(), /*shuffle=*/true});
  auto model = rank.Place(nn::MakeMlp({784, 64, 10}, {}));
  Sgd sgd(model, {/*lr=*/0.05, /*momentum=*/0.5});
  double epoch_loss = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    epoch_loss = 0;
    for (auto [x, y] : loader) {
      sgd.ZeroGrad();
      Var loss = nn::CrossEntropy(model(x.Flatten()), y);
      epoch_loss += loss.item();
      loss.Backward();
      AverageGradients(model);
      sgd.Step();
    }
    epoch_loss /= static_cast<double>(loader.size());
    rank.Print("epoch %d: %.3f\n", epoch, epoch_loss);
  }
  if (!(epoch_loss < 1)) throw std::runtime_error("it has not learnt");
}

int main() { return Main(Run, {/*ranks=*/2}); }

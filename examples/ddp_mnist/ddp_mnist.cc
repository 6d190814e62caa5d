// DistributedDataParallel on handwritten digits, with an Adam that trains the
// last layer alone: a convolution with its first, random weights below a
// classifier. The gradients of both are averaged. ddp_mnist.py is the same with
// PyTorch, with 59 lines, blank lines and comments aside.
//
//   bazel run //examples/ddp_mnist                    # generated digits
//   bazel run //examples/ddp_mnist -- $PWD/data/mnist # MNIST's IDX files
//   bazel run --config=cuda //examples/ddp_mnist -- --device=cuda
//
// "cuda" gives each rank a GPU of its own, "cuda:0" puts both on one.

#include <stdexcept>
#include <string>

#include "absl/strings/strip.h"
#include "data/registry.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/pool2d.h"
#include "troupe/troupe.h"

using namespace troupe;

struct ConvNet : nn::Net {
  nn::Conv2d& conv = Add<nn::Conv2d>("conv", 1, 16, 5);
  nn::MaxPool2d pool{4};
  nn::Linear& fc = Add<nn::Linear>("fc", 16 * 6 * 6, 10);
  Var Forward(Var x) override { return fc(pool(conv(x).Relu()).Flatten()); }
};

void Run(Rank& rank, const std::string& folder) {
  data::DatasetOptions digits;
  digits.kind = folder.empty() ? "glyphs" : "mnist";
  digits.path = folder;
  const auto splits = base::OrThrow(data::OpenDataset(digits));
  DataLoader train(rank, splits.train, {/*batch_size=*/32, /*shuffle=*/true});
  DataLoader test(rank, splits.test, {/*batch_size=*/100});
  auto model = rank.Make<ConvNet>();
  DDP ddp(model);
  Adam adam(ddp, {/*lr=*/5e-3}, /*only=*/{"fc.*"});
  for (auto [x, y] : train) {
    adam.ZeroGrad();
    Var loss = nn::CrossEntropy(ddp(x), y);
    loss.Backward();
    adam.Step();
    if (adam.steps() % 25 == 0) {
      rank.Log("step %d: loss %.3f\n", adam.steps(), loss.item());
    }
  }
  auto no_grad = rank.NoGrad();
  Var hits = rank.Zeros({1});
  for (auto [x, y] : test) hits += Sum(Argmax(ddp(x)) == y);
  AllReduce(hits);
  const double seen = static_cast<double>(test.size()) * 100 * rank.size();
  const double accuracy = hits.item() / seen;
  rank.Log("accuracy %.1f%%\n", 100 * accuracy);
  if (accuracy < 0.75) throw std::runtime_error("it has not learnt");
}

int main(int argc, char** argv) {
  absl::string_view device = "cpu", folder;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--device=")) {
      device = argument;
    } else {
      folder = argument;
    }
  }
  const auto parsed = nn::Device::Parse(device);
  if (!parsed.ok()) return ExitCode(parsed.status());
  SpawnOptions options{/*ranks=*/2};
  options.device = *parsed;
  return Main([&](Rank& rank) { Run(rank, std::string(folder)); }, options);
}

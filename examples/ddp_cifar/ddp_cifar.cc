// DistributedDataParallel on CIFAR-10 as a whole training script has it: a
// sampler with epochs, synchronised batch norms, a schedule, an accuracy over
// the test images of all ranks, and a log on rank 0. ddp_cifar.py is the same
// with PyTorch, with 70 lines, blank lines and comments aside.
//
//   bazel run //examples/ddp_cifar -- $PWD/data/cifar10   # the binary version

#include <memory>
#include <stdexcept>
#include <string>

#include "data/registry.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/pool2d.h"
#include "troupe/troupe.h"

using namespace troupe;

constexpr int kEpochs = 5;

struct ConvNet : nn::Net {
  nn::Conv2d& conv1 = Add<nn::Conv2d>("conv1", 3, 16, 3);
  nn::BatchNorm2d& bn1 = Add<nn::BatchNorm2d>("bn1", 16);
  nn::Conv2d& conv2 = Add<nn::Conv2d>("conv2", 16, 32, 3);
  nn::BatchNorm2d& bn2 = Add<nn::BatchNorm2d>("bn2", 32);
  nn::MaxPool2d pool{3};
  nn::Linear& fc = Add<nn::Linear>("fc", 32 * 2 * 2, 10);
  Var Forward(Var x) override {
    x = pool(bn1(conv1(x)).Relu());
    x = pool(bn2(conv2(x)).Relu());
    return fc(x.Flatten());
  }
};

double Accuracy(Rank& rank, const DDP& ddp, DataLoader& loader) {
  auto evaluating = rank.Evaluating();
  auto no_grad = rank.NoGrad();
  Var hits = rank.Zeros({1}), seen = rank.Zeros({1});
  for (auto [x, y] : loader) {
    hits += Sum(Argmax(ddp(x)) == y);
    seen += static_cast<double>(y.numel());
  }
  AllReduce(hits);
  AllReduce(seen);
  return hits.item() / seen.item();
}

void Run(Rank& rank, const std::string& folder) {
  data::DatasetOptions cifar;
  cifar.kind = "cifar10";
  cifar.path = folder;
  const auto splits = base::OrThrow(data::OpenDataset(cifar));
  DataLoader train(rank, splits.train, {/*batch_size=*/16, /*shuffle=*/true});
  DataLoader test(rank, splits.test, {/*batch_size=*/50});
  auto model =
      rank.Place(nn::ConvertSyncBatchNorm(std::make_unique<ConvNet>()));
  DDP ddp(model);
  Sgd sgd(ddp, {/*lr=*/0.05, /*momentum=*/0.9});
  sgd.Schedule(LrSchedule::Cosine(kEpochs), /*every=*/train.size());
  double accuracy = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    train.SetEpoch(epoch);
    Var loss;
    for (auto [x, y] : train) {
      sgd.ZeroGrad();
      loss = nn::CrossEntropy(ddp(x), y);
      loss.Backward();
      sgd.Step();
    }
    accuracy = Accuracy(rank, ddp, test);
    rank.Log("epoch %d: loss %.3f, accuracy %.1f%%\n", epoch, loss.item(),
             100 * accuracy);
  }
  if (accuracy < 0.4) throw std::runtime_error("it has not learnt");
}

int main(int argc, char** argv) {
  if (argc != 2) return ExitCode(absl::InvalidArgumentError("needs a folder"));
  return Main([&](Rank& rank) { Run(rank, argv[1]); }, {/*ranks=*/2});
}

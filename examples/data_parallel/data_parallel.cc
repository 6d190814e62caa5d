// A model whose batches are divided among four devices: PyTorch's tutorial
// "Optional: Data Parallelism". It prints the sizes inside and outside of the
// model. data_parallel.py is the same with PyTorch, with 38 lines, blank lines
// and comments aside.
//
//   bazel run //examples/data_parallel

#include <cstdio>
#include <memory>
#include <stdexcept>

#include "troupe/troupe.h"

using namespace troupe;

constexpr int kInputSize = 5, kOutputSize = 2;
constexpr int kBatchSize = 30, kDataSize = 100;

struct Net : nn::Net {
  nn::Linear& fc = Add<nn::Linear>("fc", kInputSize, kOutputSize);
  Var Forward(Var input) override {
    Var output = fc(input);
    std::printf("\tIn Model: input size %s output size %s\n",
                input.shape().ToString().c_str(),
                output.shape().ToString().c_str());
    return output;
  }
};

void Run(Rank& rank) {
  DataLoader loader(rank,
                    TensorDataset(rank.Randn({kDataSize, kInputSize}),
                                  rank.Zeros({kDataSize})),
                    {kBatchSize, /*shuffle=*/true});
  DataParallel model(rank, [] { return std::make_unique<Net>(); });
  for (auto [input, target] : loader) {
    Var output = model(input);
    if (output.shape() != Shape{input.dim(0), kOutputSize}) {
      throw std::runtime_error("the output has other rows than the input");
    }
    std::printf("Outside: input size %s output_size %s\n",
                input.shape().ToString().c_str(),
                output.shape().ToString().c_str());
  }
}

int main() {
  SpawnOptions options;
  options.devices = 4;
  std::printf("Let's use %d devices!\n", options.devices);
  return Main(Run, options);
}

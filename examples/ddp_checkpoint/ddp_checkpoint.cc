// Checkpoints under DistributedDataParallel: rank 0 saves model, optimizer and
// epoch, all ranks load, and a training that was stopped goes on with the bits
// of one that was not. ddp_checkpoint.py is the same with PyTorch, with 70
// lines, blank lines and comments aside.
//
//   bazel run //examples/ddp_checkpoint

#include <filesystem>
#include <stdexcept>
#include <string>

#include "data/registry.h"
#include "troupe/troupe.h"

using namespace troupe;

struct ToyModel : nn::Net {
  nn::Linear& net1 = Add<nn::Linear>("net1", 10, 10);
  nn::Linear& net2 = Add<nn::Linear>("net2", 10, 5);
  Var Forward(Var x) override { return net2(net1(x).Relu()); }
};

// Trains up to an epoch, from a checkpoint on if there is one, and returns the
// last epoch's loss on this rank.
double Train(Rank& rank, const std::string& path, int epochs) {
  data::DatasetOptions synthetic;
  synthetic.kind = "synthetic";
  synthetic.num_classes = 0;
  synthetic.target_dim = 5;
  DataLoader loader(rank, base::OrThrow(data::OpenDataset(synthetic)).train,
                    {/*batch_size=*/32, /*shuffle=*/true});
  auto model = rank.Make<ToyModel>();
  DDP ddp(model);
  Adam adam(ddp, {/*lr=*/0.01});
  adam.Schedule(LrSchedule::Step(1, 0.5), /*every=*/loader.size());
  int epoch = 0;
  State state;
  state.Add(ddp).Add(adam).Add("epoch", epoch);
  if (std::filesystem::exists(path)) Load(state, path);
  double sum = 0;
  while (epoch < epochs) {
    loader.SetEpoch(epoch);
    sum = 0;
    for (auto [x, y] : loader) {
      adam.ZeroGrad();
      Var loss = nn::MeanSquaredError(ddp(x), y);
      loss.Backward();
      adam.Step();
      sum += loss.item();
    }
    ++epoch;
    if (rank.number() == 0) Save(state, path);
    Barrier(rank);
    rank.Log("%s, epoch %d: %.4f\n", path, epoch, sum);
  }
  return sum;
}

void Run(Rank& rank) {
  if (rank.number() == 0) std::filesystem::remove("whole.safetensors");
  if (rank.number() == 0) std::filesystem::remove("parts.safetensors");
  Barrier(rank);
  const double whole = Train(rank, "whole.safetensors", 3);
  Train(rank, "parts.safetensors", 1);
  const double parts = Train(rank, "parts.safetensors", 3);
  if (parts != whole) throw std::runtime_error("the resumed run differs");
  rank.Log("the resumed run has the same losses\n");
}

int main() { return Main(Run, {/*ranks=*/2}); }

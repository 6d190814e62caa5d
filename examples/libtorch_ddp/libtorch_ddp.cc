// DistributedDataParallel of a model of libtorch: two processes train a module
// of torch::nn, whose gradients are all-reduced behind libtorch's backward.
// libtorch_ddp.py is the same with PyTorch's DDP over Gloo, with 101 lines,
// blank lines and comments aside. README.md says how to build it, and
// compare.py measures both.
//
//   build/libtorch_ddp --model=resnet18 --steps=20
//   build/libtorch_ddp --model=mlp --save=step.pt --trace=trace

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "actors/tracing/trace.h"
#include "base/files/file_system.h"
#include "distributed_data_parallel.h"
#include "models.h"
#include "troupe/troupe.h"

ABSL_FLAG(std::string, model, "mlp", "mlp or resnet18");
ABSL_FLAG(int, ranks, 2, "number of ranks, each in a process of its own");
ABSL_FLAG(int, batch, 0, "samples per rank; 0: 64 of mlp, 16 of resnet18");
ABSL_FLAG(int, steps, 10, "number of steps, the first of which is not timed");
ABSL_FLAG(std::string, save, "",
          "file for the first step's batch, parameters and gradients, which "
          "libtorch_ddp.py --check compares with one process");
ABSL_FLAG(std::string, trace, "",
          "prefix of a timeline of the third step for each rank, for "
          "ui.perfetto.dev");

namespace {

using troupe::Rank;

// Inputs and labels of all ranks together.
struct Batch {
  at::Tensor x, y;
};

Batch WholeBatch(const std::vector<std::int64_t>& sample, std::int64_t size) {
  torch::manual_seed(1);
  std::vector<std::int64_t> shape = {size};
  shape.insert(shape.end(), sample.begin(), sample.end());
  return {torch::randn(shape), torch::randint(10, {size})};
}

// Saves a dictionary that torch.load() reads.
void Save(const std::string& path, const torch::nn::Module& model,
          const Batch& batch) {
  c10::Dict<std::string, at::Tensor> saved;
  saved.insert("x", batch.x);
  saved.insert("y", batch.y);
  for (const auto& item : model.named_parameters()) {
    saved.insert(absl::StrCat("value of ", item.key()), item.value().detach());
    saved.insert(absl::StrCat("grad of ", item.key()), item.value().grad());
  }
  const std::vector<char> bytes = torch::pickle_save(saved);
  std::ofstream(path, std::ios::binary).write(bytes.data(), bytes.size());
}

template <typename Module>
void Train(Rank& rank, Module model, const std::vector<std::int64_t>& sample,
           int batch_size) {
  const Batch whole = WholeBatch(sample, rank.size() * batch_size);
  const at::Tensor x = whole.x.chunk(rank.size())[rank.number()];
  const at::Tensor y = whole.y.chunk(rank.size())[rank.number()];
  troupe::actors::ChromeTrace trace({/*first_step=*/3, /*steps=*/1});
  const std::string prefix = absl::GetFlag(FLAGS_trace);
  ReducerOptions options;
  if (!prefix.empty()) options.trace = &trace;

  DistributedDataParallel ddp(rank, model, options);
  torch::optim::SGD sgd(model->parameters(), /*lr=*/0.01);
  std::vector<double> times_ms;
  double loss_of_step = 0;
  for (int step = 0; step < absl::GetFlag(FLAGS_steps); ++step) {
    const auto begin = std::chrono::steady_clock::now();
    sgd.zero_grad();
    const at::Tensor loss = torch::cross_entropy_loss(ddp(x), y);
    loss.backward();
    if (step == 0 && rank.number() == 0 && !absl::GetFlag(FLAGS_save).empty()) {
      Save(absl::GetFlag(FLAGS_save), *model, whole);
    }
    sgd.step();
    loss_of_step = loss.item<double>();
    times_ms.push_back(std::chrono::duration<double, std::milli>(
                           std::chrono::steady_clock::now() - begin)
                           .count());
  }
  if (!prefix.empty()) {
    troupe::base::PosixFileSystem files;
    troupe::base::OrThrow(trace.WriteFile(
        files, absl::StrCat(prefix, ".", rank.number(), ".json")));
  }
  times_ms.erase(times_ms.begin());
  std::sort(times_ms.begin(), times_ms.end());
  rank.Log("%d buckets, loss %.4f, median step %.2f ms\n", ddp.buckets(),
           loss_of_step, times_ms[times_ms.size() / 2]);
}

void Run(Rank& rank) {
  torch::set_num_threads(1);
  torch::manual_seed(100 + rank.number());  // DDP gives all those of rank 0
  const std::string model = absl::GetFlag(FLAGS_model);
  const int batch = absl::GetFlag(FLAGS_batch);
  if (model == "mlp") {
    Train(rank, MakeMlp(), {784}, batch > 0 ? batch : 64);
  } else if (model == "resnet18") {
    Train(rank, ResNet18(), {3, 64, 64}, batch > 0 ? batch : 16);
  } else {
    throw troupe::StatusError(absl::InvalidArgumentError(
        absl::StrCat("--model=", model, " must be mlp or resnet18")));
  }
}

}  // namespace

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  troupe::SpawnOptions options;
  options.ranks = absl::GetFlag(FLAGS_ranks);
  options.processes = options.ranks;
  return troupe::Main(Run, options);
}

// Builds a pipeline of custom stages, each an actor: one reads data, two train
// parts of a model on two devices, one collects metrics. Activations go forward
// and gradients back, with up to four micro-batches in flight.
//
//   bazel run //examples/custom_pipeline
//
// Runs the same description in threads, in the simulator under 20 seeds, and in
// two processes, and fails if a loss differs by a bit from those of a plain
// loop over the two parts.

#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "actors/dataflow/dataflow.h"
#include "actors/dataflow/model_part.h"
#include "actors/dataflow/run_dataflow.h"
#include "actors/dataflow/simulate_dataflow.h"
#include "base/check.h"
#include "data/batch_source.h"
#include "data/synthetic/synthetic.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "pipeline/partition.h"

extern char** environ;

namespace {

using namespace troupe;  // An example may be short.
using actors::Channel, actors::ModelPart, actors::Tensors;
using nn::Tensor;

constexpr int kSteps = 20, kMicroBatches = 4, kBatch = 64;

absl::StatusOr<std::unique_ptr<ModelPart>> MakePart(int stage,
                                                    const char* device) {
  actors::ModelPartOptions options;
  // Children: 0 flatten, 1 linear, 2 relu, 3 linear, 4 relu, 5 linear.
  options.model = [stage] {
    return pipeline::BuildStage(
        [] {
          return nn::MakeMlp({10, 64, 64, 10}, {});
        },
        {"3"}, stage);
  };
  options.optimizer = [] {
    return std::make_unique<nn::Sgd>(
        nn::SgdOptions{/*lr=*/0.1, /*momentum=*/0.9});
  };
  if (stage == 1) options.loss = nn::ops::CrossEntropyLoss();
  TROUPE_ASSIGN_OR_RETURN(options.device, nn::Device::Parse(device));
  return ModelPart::Create(options);
}

// Source stage: returns the micro-batches of all steps, one by one.
class Reader {
 public:
  static absl::StatusOr<std::unique_ptr<Reader>> Open() {
    TROUPE_ASSIGN_OR_RETURN(data::DatasetPtr train,
                            data::MakeSyntheticDataset({}, "train"));
    data::SamplerOptions sampler;
    sampler.global_batch_size = kBatch;
    TROUPE_ASSIGN_OR_RETURN(
        data::BatchSource source,
        data::BatchSource::Create(
            train, sampler, {/*rank=*/0, /*world=*/1, kBatch / kMicroBatches},
            Memory()));
    return std::make_unique<Reader>(std::move(source));
  }
  explicit Reader(data::BatchSource source) : source_(std::move(source)) {}

  absl::StatusOr<std::optional<Tensors>> Next() {
    if (given_ == kSteps * kMicroBatches) return std::nullopt;
    const int number = given_++ % kMicroBatches;
    if (number == 0) TROUPE_RETURN_IF_ERROR(source_.Next(batches_));
    return Tensors{batches_[number].inputs, batches_[number].targets};
  }

 private:
  static nn::Allocator& Memory() {
    static nn::CachingAllocator memory;  // thread-safe
    return memory;
  }
  data::BatchSource source_;
  std::vector<data::Batch> batches_;
  int given_ = 0;
};

class First {
 public:
  static absl::StatusOr<std::unique_ptr<First>> Make() {
    TROUPE_ASSIGN_OR_RETURN(auto part, MakePart(/*stage=*/0, "cpu:0"));
    return std::make_unique<First>(std::move(part));
  }
  explicit First(std::unique_ptr<ModelPart> part) : part_(std::move(part)) {}

  absl::StatusOr<Tensor> Forward(const Tensor& x) {
    ++forwards_;
    return part_->Forward(x);
  }
  absl::Status Backward(const Tensor& dy) {
    TROUPE_RETURN_IF_ERROR(part_->Backward(dy).status());
    if (++backwards_ % kMicroBatches != 0) return absl::OkStatus();
    return part_->Update(kBatch);
  }
  // Returns whether a forward may run: those of the next step wait for this
  // step's update.
  bool MayForward() const {
    return forwards_ / kMicroBatches == part_->updates();
  }

 private:
  std::unique_ptr<ModelPart> part_;
  int forwards_ = 0, backwards_ = 0;
};

class Second {
 public:
  static absl::StatusOr<std::unique_ptr<Second>> Make() {
    TROUPE_ASSIGN_OR_RETURN(auto part, MakePart(/*stage=*/1, "reference:0"));
    return std::make_unique<Second>(std::move(part));
  }
  explicit Second(std::unique_ptr<ModelPart> part) : part_(std::move(part)) {}

  // Maps {activation, targets} to {gradient, statistics of the loss}.
  absl::StatusOr<Tensors> Train(const Tensors& in) {
    TROUPE_ASSIGN_OR_RETURN(Tensor loss, part_->Loss(in[0], in[1]));
    TROUPE_ASSIGN_OR_RETURN(Tensor gradient, part_->Backward());
    if (++backwards_ % kMicroBatches == 0) {
      TROUPE_RETURN_IF_ERROR(part_->Update(kBatch));
    }
    return Tensors{std::move(gradient), std::move(loss)};
  }

 private:
  std::unique_ptr<ModelPart> part_;
  int backwards_ = 0;
};

// Sink stage: adds up the losses of each step.
class Metrics {
 public:
  explicit Metrics(std::vector<double>* losses) : losses_(*losses) {}
  absl::Status Add(const Tensor& stats) {
    if (count_++ % kMicroBatches == 0) losses_.push_back(0);
    losses_.back() += stats.data<double>()[nn::ops::kLossSum] / kBatch;
    return absl::OkStatus();
  }

 private:
  std::vector<double>& losses_;
  int count_ = 0;
};

// Describes the pipeline. Process `away` runs the second part of the model.
actors::Dataflow MakeFlow(std::vector<double>* losses, int away) {
  actors::Dataflow flow;
  const Channel inputs = flow.AddChannel("inputs");
  const Channel targets = flow.AddChannel("targets", kMicroBatches);
  const Channel activations = flow.AddChannel("activations");
  const Channel gradients = flow.AddChannel("gradients");
  const Channel stats = flow.AddChannel("stats");
  flow.AddStage<Reader>("data", Reader::Open)
      .Source({inputs, targets}, &Reader::Next);
  flow.AddStage<First>("first", First::Make)
      .On(gradients, &First::Backward)  // runs before a forward if both may run
      .On(inputs, activations, &First::Forward)
      .When(&First::MayForward);
  flow.AddStage<Second>("second", Second::Make)
      .On({activations, targets}, {gradients, stats}, &Second::Train)
      .InProcess(away);
  flow.AddStage<Metrics>("metrics",
                         [=] { return std::make_unique<Metrics>(losses); })
      .On(stats, &Metrics::Add);
  return flow;
}

// Trains the two parts without actors.
absl::StatusOr<std::vector<double>> PlainLoop() {
  std::vector<double> losses;
  TROUPE_ASSIGN_OR_RETURN(auto reader, Reader::Open());
  TROUPE_ASSIGN_OR_RETURN(auto first, First::Make());
  TROUPE_ASSIGN_OR_RETURN(auto second, Second::Make());
  Metrics metrics(&losses);
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(const auto batch, reader->Next());
    if (!batch) return losses;
    TROUPE_ASSIGN_OR_RETURN(Tensor activation, first->Forward((*batch)[0]));
    TROUPE_ASSIGN_OR_RETURN(Tensors out,
                            second->Train({activation, (*batch)[1]}));
    TROUPE_RETURN_IF_ERROR(first->Backward(out[0]));
    TROUPE_RETURN_IF_ERROR(metrics.Add(out[1]));
  }
}

actors::DataflowOptions InProcess(int process, int port) {
  actors::DataflowOptions options;
  options.cluster.emplace();
  options.cluster->process = process;
  options.cluster->processes = 2;
  options.cluster->master_port = port;
  // For a host without other users only; elsewhere, set certificates instead.
  options.cluster->insecure = true;
  return options;
}

// Runs process 0, which starts process 1 as soon as it listens on a port.
absl::Status RunInTwoProcesses(std::vector<double>* losses) {
  actors::DataflowOptions options = InProcess(/*process=*/0, /*port=*/0);
  pid_t child = -1;
  options.cluster->on_listening = [&child](int port) {
    const std::string text = std::to_string(port);
    const char* arguments[] = {"custom_pipeline", text.c_str(), nullptr};
    const int error = posix_spawn(&child, "/proc/self/exe", nullptr, nullptr,
                                  const_cast<char**>(arguments), environ);
    return error == 0 ? absl::OkStatus()
                      : absl::InternalError(std::strerror(error));
  };
  const absl::Status status =
      RunDataflow(MakeFlow(losses, /*away=*/1), options).status();
  int how = 0;
  if (child > 0) waitpid(child, &how, 0);
  if (status.ok() && how != 0) return absl::InternalError("process 1 failed");
  return status;
}

absl::Status Run() {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<double> expected, PlainLoop());
  const auto compare = [&](const char* where, const std::vector<double>& got) {
    if (got == expected) return absl::OkStatus();
    return absl::InternalError(std::string("other losses ") + where);
  };
  std::vector<double> losses;
  const actors::Dataflow flow = MakeFlow(&losses, /*away=*/0);
  std::printf("%s", flow.ToString().c_str());
  TROUPE_ASSIGN_OR_RETURN(const auto report, RunDataflow(flow));
  TROUPE_RETURN_IF_ERROR(compare("in threads", losses));
  for (const actors::ChannelReport& channel : report.channels) {
    std::printf("%s: %d tensors, at most %d at a time\n", channel.name.c_str(),
                static_cast<int>(channel.tensors), channel.in_flight_max);
  }
  for (int seed = 0; seed < 20; ++seed) {
    losses.clear();
    actors::DataflowSimulation options;
    options.seed = seed;
    TROUPE_RETURN_IF_ERROR(SimulateDataflow(flow, options)[0].status());
    TROUPE_RETURN_IF_ERROR(compare("in the simulator", losses));
  }
  losses.clear();
  TROUPE_RETURN_IF_ERROR(RunInTwoProcesses(&losses));
  TROUPE_RETURN_IF_ERROR(compare("in two processes", losses));
  std::printf("losses from %.4f to %.4f, the same everywhere\n",
              expected.front(), expected.back());
  if (expected.back() < 0.8 * expected.front()) return absl::OkStatus();
  return absl::InternalError("nothing was learned");
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<double> losses;
  const absl::Status status =
      argc < 2 ? Run()
               : RunDataflow(MakeFlow(&losses, /*away=*/1),
                             InProcess(/*process=*/1, std::atoi(argv[1])))
                     .status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

#include "troupe/devices/device_replica.h"

#include <numeric>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_error.h"
#include "nn/autograd/guards.h"
#include "troupe/internal/model_core.h"
#include "troupe/internal/model_layout.h"

namespace troupe {
namespace {

// y = x. In backward, keeps the gradient.
class InputNode final : public nn::Node {
 public:
  explicit InputNode(Tensor* gradient) : gradient_(gradient) {}
  const char* name() const override { return "device_input"; }
  absl::Status BackwardInputs(nn::Kernels&, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    *gradient_ = dy;
    dx[0] = dy;
    return absl::OkStatus();
  }

 private:
  Tensor* const gradient_;
};

class QuietSink final : public nn::GradientSink {
 public:
  void GradientComplete(nn::Parameter&) override {}
  void LastReaderDone(nn::Parameter&) override {}
};

}  // namespace

struct DeviceReplica::Recorded {
  bool records = false;
  nn::Tape tape;
  Tensor output;
  Tensor input_gradient;  // undefined: none has come
};

Group& JoinDevices(ModelCore& core, int devices) {
  Rank& rank = core.rank();
  std::vector<int> all(devices);
  std::iota(all.begin(), all.end(), 0);
  Group& group = rank.NewGroup(all);
  CompareModels(rank, group, core.module(), "DataParallel");
  Distribution distribution;
  distribution.sums = true;
  core.Distribute(distribution, group.ranks());
  return group;
}

std::vector<bool> TrainedOf(absl::Span<nn::Parameter* const> parameters) {
  std::vector<bool> trained;
  for (const nn::Parameter* parameter : parameters) {
    trained.push_back(parameter->requires_grad);
  }
  return trained;
}

DeviceReplica::DeviceReplica(Rank& rank, int devices,
                             const nn::ModelFactory& make)
    : rank_(rank),
      model_(rank, make()),
      parameters_(model_.Parameters()),
      exchange_(model_.core(), JoinDevices(model_.core(), devices)) {}

DeviceReplica::~DeviceReplica() = default;

void DeviceReplica::SetTrained(const std::vector<bool>& trained) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i]->requires_grad = trained[i];
  }
}

void DeviceReplica::Forward(const DeviceForward& forward,
                            DeviceOutput& output) {
  SetTrained(forward.trained);
  if (forward.shares_state) {
    exchange_.ShareState();
  } else {
    exchange_.ShareBuffers();
  }
  const DividedRows& input = forward.input;
  Tensor part = exchange_.ReceiveRows(input);
  if (input.rows[device()] == 0) return;
  auto recorded = std::make_unique<Recorded>();
  const absl::Status status =
      base::Try([&] { Run(forward, std::move(part), *recorded); });
  output.ran = true;
  if (status.ok()) {
    output.output = exchange_.Shared(recorded->output);
    if (forward.records || !exchange_.shares_memory()) {
      recorded_[forward.id] = std::move(recorded);
    }
  }
  output.done.Complete(status);
}

void DeviceReplica::Run(const DeviceForward& forward, Tensor input,
                        Recorded& recorded) {
  nn::Context& ctx = rank_.context();
  nn::StepPosition position = forward.position;
  position.rank = rank_.number();
  for (int device = 0; device < this->device(); ++device) {
    position.sample += forward.input.rows[device];
  }
  if (!ctx.random().has_value() || ctx.random()->step != position.step) {
    ctx.BeginStep();
  }
  ctx.set_random(position);
  nn::Tape* const tape = ctx.tape();
  const bool training = ctx.training();
  const absl::Cleanup restored = [&ctx, tape, training] {
    ctx.set_tape(tape);
    ctx.set_training(training);
  };
  ctx.set_tape(forward.records ? &recorded.tape : nullptr);
  ctx.set_training(forward.training);
  recorded.records = forward.records;
  if (forward.tracks_input) {
    const Tensor watched = recorded.tape.Watch(input);
    input = recorded.tape.Record(
        std::make_unique<InputNode>(&recorded.input_gradient), {watched},
        /*num_weights=*/0, input);
  }
  recorded.output = model_.module()(Var(ctx, input));
}

void DeviceReplica::SendOutput(std::int64_t id, const DividedRows& output) {
  const auto found = recorded_.find(id);
  exchange_.SendRows(
      found == recorded_.end() ? Tensor() : found->second->output, output);
  if (found != recorded_.end() && !found->second->records) {
    recorded_.erase(found);
  }
}

void DeviceReplica::Drop(absl::Span<const std::int64_t> ids) {
  for (const std::int64_t id : ids) recorded_.erase(id);
}

void DeviceReplica::Backward(const DeviceBackward& backward) {
  if (backward.trains && backward.first) model_.core().ZeroGrad();
  const Tensor dy = exchange_.ReceiveRows(backward.gradient);
  Recorded none;  // a part without rows: gradients of zeros
  const auto found = recorded_.find(backward.id);
  Recorded& recorded = found == recorded_.end() ? none : *found->second;
  RunBackward(dy, backward, recorded);
  if (backward.input.has_value()) {
    SendInputGradient(backward, recorded.input_gradient);
  }
  recorded_.erase(backward.id);
  if (backward.awaits) AwaitGradients();
}

void DeviceReplica::RunBackward(const Tensor& dy,
                                const DeviceBackward& backward,
                                Recorded& recorded) {
  nn::BackwardRoot root;
  if (recorded.tape.Tracks(recorded.output)) {
    root.tensor = recorded.output;
    root.seed = dy.View(recorded.output.shape());
  } else {
    root.seed = rank_.Zeros({1});
    root.tensor = recorded.tape.Watch(root.seed);
  }
  if (!backward.trains) {
    QuietSink sink;
    nn::BackwardPass pass(recorded.tape, rank_.kernels(), sink,
                          nn::BackwardPass::Mode::kWhole);
    pass.Seed(root.tensor, root.seed);
    while (base::OrThrow(pass.Next())) {
    }
    return;
  }
  ModelCore* const core = &model_.core();
  nn::Context& ctx = rank_.context();
  nn::Tape* const tape = ctx.tape();
  ctx.set_tape(&recorded.tape);
  core->set_synced(backward.last);
  const absl::Status status =
      ModelCore::Backward(absl::MakeConstSpan(&core, 1), root);
  ctx.set_tape(tape);
  base::OrThrow(status);
}

void DeviceReplica::SendInputGradient(const DeviceBackward& backward,
                                      const Tensor& gradient) {
  Tensor part = gradient;
  const DividedRows& input = *backward.input;
  if (!part.defined()) {
    nn::Shape shape = input.shape;
    shape.set(0, input.rows[device()]);
    part = rank_.Zeros(shape, input.dtype);
  }
  if (!exchange_.shares_memory()) return exchange_.SendRows(part, input);
  DeviceOutput& answer = *backward.input_gradients[device() - 1];
  answer.ran = true;
  answer.output = exchange_.Shared(part);
  answer.done.Complete(absl::OkStatus());
}

void DeviceReplica::AwaitGradients() {
  base::OrThrow(model_.core().engine().AwaitGradients());
}

void DeviceReplica::MakeOptimizer(const MakeOptimizerFn& make,
                                  const std::vector<std::string>& only,
                                  const std::vector<bool>& trained) {
  SetTrained(trained);
  optimizer_.emplace(model_, make, only);
}

void FollowProgram(Rank& rank, DeviceLine& line) {
  const absl::Cleanup ended = [&line] { line.Abandon(); };
  DeviceReplicas replicas(rank);
  try {
    while (DeviceTask task = line.Await(rank.strand())) task(replicas);
  } catch (const base::StatusError& error) {
    throw base::StatusError(absl::Status(
        error.status().code(),
        absl::StrCat("device ", rank.number(),
                     " of a DataParallel: ", error.status().message())));
  }
}

}  // namespace troupe

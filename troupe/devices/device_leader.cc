#include "troupe/devices/device_leader.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_error.h"
#include "nn/autograd/tape.h"
#include "nn/kernels/device_queues.h"
#include "troupe/internal/model_core.h"

namespace troupe {
namespace {

absl::Status OfDevice(int device, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("device ", device, ": ", status.message()));
}

// Makes a replica of `core` on each other device. Returns all devices.
Group& MakeReplicas(ModelCore& core, DeviceLines& lines, int number,
                    const nn::ModelFactory& make) {
  const int devices = lines.devices();
  for (int device = 1; device < devices; ++device) {
    lines.of(device).Post([number, devices, make](DeviceReplicas& replicas) {
      replicas.Add(number, std::make_unique<DeviceReplica>(replicas.rank(),
                                                           devices, make));
    });
  }
  return JoinDevices(core, devices);
}

}  // namespace

// State that outlives the leader, in nodes of the tape.
struct DeviceLeader::Shared {
  DeviceLeader* leader;               // null: it has ended
  std::vector<std::int64_t> dropped;  // forwards that get no backward
  std::vector<std::weak_ptr<Parts>> recorded;
};

// A forward. While a tape has its nodes, the other devices keep theirs.
struct DeviceLeader::Parts {
  explicit Parts(std::shared_ptr<Shared> by) : shared(std::move(by)) {}
  ~Parts() { shared->dropped.push_back(id); }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // Returns the leader of a backward that BeginBackward() has begun.
  absl::StatusOr<DeviceLeader*> Leader() const {
    if (shared->leader != nullptr && reached) return shared->leader;
    return absl::FailedPreconditionError(
        "the backward goes through a DataParallel that has ended, or of which "
        "no parameter is trained; keep it up to Backward()");
  }

  const std::shared_ptr<Shared> shared;
  std::int64_t id = 0;
  DividedRows input, output;
  nn::Shape own_output;  // shape of this device's part
  nn::TapeRef input_ref, output_ref;
  // Whether the present backward goes through it, and to its input.
  bool reached = false;
  bool reaches_input = false;
  Outputs input_gradients;  // answers of that backward
};

// The outputs of all devices. In backward, the others begin theirs.
class DeviceLeader::GatherNode final : public nn::Node {
 public:
  explicit GatherNode(PartsPtr parts) : parts_(std::move(parts)) {}
  const char* name() const override { return "data_parallel"; }
  absl::Status BackwardInputs(nn::Kernels&, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(DeviceLeader* const leader, parts_->Leader());
    TROUPE_ASSIGN_OR_RETURN(dx[0], leader->ScatterGradient(*parts_, dy));
    return absl::OkStatus();
  }

 private:
  const PartsPtr parts_;
};

// This device's part of an input. In backward, it waits for the others' parts.
class DeviceLeader::InputNode final : public nn::Node {
 public:
  explicit InputNode(PartsPtr parts) : parts_(std::move(parts)) {}
  const char* name() const override { return "data_parallel_input"; }
  absl::Status BackwardInputs(nn::Kernels&, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(DeviceLeader* const leader, parts_->Leader());
    TROUPE_ASSIGN_OR_RETURN(dx[0], leader->GatherGradient(*parts_, dy));
    return absl::OkStatus();
  }

 private:
  const PartsPtr parts_;
};

DeviceLeader::DeviceLeader(ModelCore& core, DeviceLines& lines,
                           const nn::ModelFactory& make)
    : core_(core),
      rank_(core.rank()),
      lines_(lines),
      number_(lines.NewModel()),
      parameters_(core.module().Parameters()),
      exchange_(core, MakeReplicas(core, lines, number_, make)),
      shared_(std::make_shared<Shared>()) {
  shared_->leader = this;
}

DeviceLeader::~DeviceLeader() {
  shared_->leader = nullptr;
  for (int device = 1; device < lines_.devices(); ++device) {
    lines_.of(device).Post([number = number_](DeviceReplicas& replicas) {
      replicas.Remove(number);
    });
  }
}

void DeviceLeader::Post(std::function<void(DeviceReplica&)> task) {
  for (int device = 1; device < lines_.devices(); ++device) {
    lines_.of(device).Post([number = number_, task, dropped = shared_->dropped](
                               DeviceReplicas& replicas) {
      DeviceReplica& replica = replicas.of(number);
      replica.Drop(dropped);
      task(replica);
    });
  }
  shared_->dropped.clear();
}

std::pair<DeviceLeader::Outputs, DeviceLeader::Outputs>
DeviceLeader::MakeOutputs() const {
  Outputs outputs, answers;
  for (int device = 1; device < lines_.devices(); ++device) {
    const auto output = std::make_shared<DeviceOutput>();
    outputs.push_back(output);
    answers.emplace_back(output.get(), [output](DeviceOutput* unanswered) {
      unanswered->done.Complete(absl::CancelledError("the device has ended"));
    });
  }
  return {std::move(outputs), std::move(answers)};
}

DeviceLeader::Outputs DeviceLeader::PostForward(const Parts& parts,
                                                const Tensor& input) {
  const nn::Context& ctx = rank_.context();
  DeviceForward forward;
  forward.id = parts.id;
  forward.input = parts.input;
  forward.input.whole = exchange_.Shared(input);
  forward.training = ctx.training();
  forward.records = rank_.records();
  forward.position = ctx.random().value_or(nn::StepPosition());
  forward.tracks_input = ctx.Tracks({input});
  forward.shares_state = std::exchange(shares_state_, false);
  forward.trained = TrainedOf(parameters_);
  auto [outputs, answers] = MakeOutputs();
  Post([forward = std::move(forward),
        answers = std::move(answers)](DeviceReplica& replica) {
    replica.Forward(forward, *answers[replica.device() - 1]);
  });
  return outputs;
}

Var DeviceLeader::OwnInput(const Var& x, const PartsPtr& parts) {
  nn::Context& ctx = rank_.context();
  const Tensor part = x.tensor().Detached().Slice(0, parts->input.rows[0]);
  if (!ctx.Tracks({x.tensor()})) return Var(ctx, part);
  const Tensor tracked =
      ctx.tape()->Record(std::make_unique<InputNode>(parts), {x.tensor()},
                         /*num_weights=*/0, part);
  parts->input_ref = tracked.tape_ref();
  return Var(ctx, tracked);
}

absl::StatusOr<std::vector<Tensor>> DeviceLeader::Await(
    const Outputs& outputs, const Tensor& own,
    const std::vector<std::int64_t>& rows) {
  // All of them have ended before an error leaves.
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (rows[i + 1] > 0) rank_.strand().AwaitEvent(outputs[i]->done);
  }
  std::vector<Tensor> parts = {own};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const DeviceOutput& output = *outputs[i];
    if (rows[i + 1] > 0) {
      if (!output.ran) return exchange_.AwaitFailure();
      TROUPE_RETURN_IF_ERROR(
          OfDevice(static_cast<int>(i) + 1, output.done.status()));
    }
    parts.push_back(output.output);
  }
  return parts;
}

Var DeviceLeader::Forward(const Var& x) {
  const actors::CallNote::Scope call(rank_.strand().call(), "DataParallel", {});
  if (x.shape().rank() == 0) {
    throw base::StatusError(absl::InvalidArgumentError(
        "the input of a DataParallel is a scalar; its first axis must be that "
        "of samples"));
  }
  const bool shares_state = shares_state_;
  const auto parts = std::make_shared<Parts>(shared_);
  parts->id = forwards_++;
  parts->input.rows = ChunkRows(x.dim(0), exchange_.devices());
  parts->input.shape = x.shape();
  parts->input.dtype = x.dtype();
  nn::Context& ctx = rank_.context();
  const Outputs outputs = PostForward(*parts, x);
  if (shares_state) {
    exchange_.ShareState();
  } else {
    exchange_.ShareBuffers();
  }
  exchange_.ScatterRows(x, parts->input);
  Tensor own;
  absl::Status status =
      OfDevice(0, base::Try([&] { own = core_.module()(OwnInput(x, parts)); }));
  const auto outputs_of_all = Await(outputs, own, parts->input.rows);
  status.Update(outputs_of_all.status());
  base::OrThrow(status);
  parts->output = base::OrThrow(JoinedRows(*outputs_of_all));
  parts->own_output = own.shape();
  if (!exchange_.shares_memory()) {
    Post([id = parts->id, output = parts->output](DeviceReplica& replica) {
      replica.SendOutput(id, output);
    });
  }
  const Tensor all = exchange_.GatherRows(*outputs_of_all, parts->output);
  if (!ctx.Tracks({own})) return Var(ctx, all);
  const Tensor tracked = ctx.tape()->Record(std::make_unique<GatherNode>(parts),
                                            {own}, /*num_weights=*/0, all);
  parts->output_ref = tracked.tape_ref();
  shared_->recorded.push_back(parts);
  return Var(ctx, tracked);
}

void DeviceLeader::BeginBackward(const Tensor& root, bool trains) {
  const nn::Tape::Reach reach = rank_.context().tape()->ReachOf(root);
  int forwards = 0;
  std::vector<std::weak_ptr<Parts>> recorded;
  for (const std::weak_ptr<Parts>& weak : shared_->recorded) {
    const PartsPtr parts = weak.lock();
    if (parts == nullptr) continue;
    recorded.push_back(parts);
    parts->reached = reach.Has(parts->output_ref);
    parts->reaches_input = parts->reached && reach.Has(parts->input_ref);
    if (parts->reached) ++forwards;
  }
  shared_->recorded = std::move(recorded);
  backward_ = {trains, forwards, forwards};
  if (!trains || forwards > 0) return;
  // The loss depends on this device's parameters alone.
  DeviceBackward none;
  none.id = -1;
  none.gradient.rows.resize(exchange_.devices());
  none.gradient.shape = {0};
  none.gradient.whole = exchange_.Shared(rank_.Zeros({0}));
  none.trains = none.first = none.last = true;
  Post([none](DeviceReplica& replica) { replica.Backward(none); });
}

bool DeviceLeader::IsLastOfAll() const {
  const std::vector<ModelCore*>& models = rank_.models();
  return std::all_of(models.begin(), models.end(), [](ModelCore* model) {
    const DeviceLeader* const leader = model->leader();
    return leader == nullptr || leader->backward_.forwards_left == 0;
  });
}

absl::StatusOr<Tensor> DeviceLeader::ScatterGradient(Parts& parts,
                                                     const Tensor& dy) {
  DeviceBackward backward;
  backward.id = parts.id;
  backward.gradient = parts.output;
  backward.gradient.whole = exchange_.Shared(dy);
  backward.trains = backward_.trains;
  backward.first = backward_.forwards_left == backward_.forwards;
  backward.last = --backward_.forwards_left == 0;
  backward.awaits = backward.trains && IsLastOfAll();
  if (parts.reaches_input) {
    backward.input = parts.input;
    std::tie(parts.input_gradients, backward.input_gradients) = MakeOutputs();
  }
  Post([backward = std::move(backward)](DeviceReplica& replica) {
    replica.Backward(backward);
  });
  TROUPE_RETURN_IF_ERROR(
      base::Try([&] { exchange_.ScatterRows(dy, parts.output); }));
  return dy.Slice(0, parts.output.rows[0]).View(parts.own_output);
}

absl::StatusOr<Tensor> DeviceLeader::GatherGradient(const Parts& parts,
                                                    const Tensor& own) {
  std::vector<Tensor> gradients = {own};
  if (exchange_.shares_memory()) {
    TROUPE_ASSIGN_OR_RETURN(
        gradients, Await(parts.input_gradients, own, parts.input.rows));
  }
  Tensor all;
  TROUPE_RETURN_IF_ERROR(
      base::Try([&] { all = exchange_.GatherRows(gradients, parts.input); }));
  return all;
}

absl::Status DeviceLeader::EndBackward() {
  if (!backward_.trains) return absl::OkStatus();
  TROUPE_CHECK(backward_.forwards_left == 0,
               "the backward goes through all that it reaches");
  Post([](DeviceReplica& replica) { replica.AwaitGradients(); });
  TROUPE_RETURN_IF_ERROR(core_.engine().AwaitGradients());
  steps_ = true;
  return absl::OkStatus();
}

void DeviceLeader::Step(const CallPlace& place, double rate) {
  // Without gradients the step is refused.
  if (!std::exchange(steps_, false)) return;
  Post([place, rate](DeviceReplica& replica) { replica.Step(place, rate); });
}

void DeviceLeader::MakeOptimizer(const DeviceReplica::MakeOptimizerFn& make,
                                 const std::vector<std::string>& only) {
  Post([make, only, trained = TrainedOf(parameters_)](DeviceReplica& replica) {
    replica.MakeOptimizer(make, only, trained);
  });
  ShareState();
}

void DeviceLeader::Load(std::function<void(Optimizer&)> load) {
  Post(
      [load = std::move(load)](DeviceReplica& replica) { replica.Load(load); });
  ShareState();
}

}  // namespace troupe

// The replica of a DataParallel's model (troupe/data_parallel.h) on a further
// device of the rank. It does what the model on the first device has it do, by
// tasks (troupe/devices/device_line.h): forwards and backwards of this device's
// part of the batch, steps of an optimizer of its own.
//
// A forward is recorded on a tape of its own, so that each may have its
// backward at any time: the first device has one tape for all, and resets it.
//
// Errors: base::StatusError. Those of a forward are the answer of its task; any
// other ends the program, since the devices would wait for each other.
// Threads: the device's own.

#ifndef TROUPE_DEVICES_DEVICE_REPLICA_H_
#define TROUPE_DEVICES_DEVICE_REPLICA_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event.h"
#include "nn/autograd/context.h"
#include "nn/autograd/tape.h"
#include "nn/modules/module.h"
#include "nn/optim/optimizer.h"
#include "troupe/devices/device_exchange.h"
#include "troupe/devices/device_line.h"
#include "troupe/model.h"
#include "troupe/optimizer.h"

namespace troupe {

// A forward of all devices.
struct DeviceForward {
  std::int64_t id = 0;  // number of the forward
  DividedRows input;
  // Modes of the first device's context, and its position in the batches.
  bool training = false;
  bool records = false;
  nn::StepPosition position;
  bool tracks_input = false;  // whether gradients may go to the input
  // Whether the replicas begin with the state of the first one.
  bool shares_state = false;
  std::vector<bool> trained;  // requires_grad of each parameter
};

// The answer of a device: its rows of an output, or of an input's gradient.
struct DeviceOutput {
  // Completes with the status, after the rest was set.
  base::Event done = base::Event::Make();
  bool ran = false;  // false: the device ended before
  Tensor output;     // DeviceExchange::Shared()
};

struct DeviceBackward {
  std::int64_t id = 0;  // number of the forward; below 0: none
  DividedRows gradient;
  // Whether it computes gradients of parameters; otherwise that of the input
  // alone.
  bool trains = false;
  // Whether it is the first forward of the program's backward: what earlier
  // backwards have added up is in the gradients of the first device alone.
  bool first = false;
  bool last = false;  // whether the devices then add up their gradients
  // Whether nothing else is left of the program's backward, so that the device
  // may work on the sums until these are complete.
  bool awaits = false;
  // The input, if the first device takes its gradient; and the answers.
  std::optional<DividedRows> input;
  std::vector<std::shared_ptr<DeviceOutput>> input_gradients;
};

// Lets the model's gradients be added up over the rank's devices from now on,
// together with the other devices. Returns the group of all.
Group& JoinDevices(ModelCore& core, int devices);
// Returns requires_grad of each parameter.
std::vector<bool> TrainedOf(absl::Span<nn::Parameter* const> parameters);

class DeviceReplica {
 public:
  using MakeOptimizerFn = std::function<std::unique_ptr<nn::Optimizer>()>;

  // Makes the replica, together with the other devices.
  DeviceReplica(Rank& rank, int devices, const nn::ModelFactory& make);
  ~DeviceReplica();

  int device() const { return exchange_.device(); }

  void Forward(const DeviceForward& forward, DeviceOutput& output);
  // Without shared memory: sends the first device this one's rows of an output.
  void SendOutput(std::int64_t id, const DividedRows& output);
  // Forgets forwards that get no backward.
  void Drop(absl::Span<const std::int64_t> ids);
  void Backward(const DeviceBackward& backward);
  void AwaitGradients();

  void MakeOptimizer(const MakeOptimizerFn& make,
                     const std::vector<std::string>& only,
                     const std::vector<bool>& trained);
  void Step(const CallPlace& place, double rate) {
    model_.core().Step(place, rate);
  }
  // Calls load() on the optimizer, for numbers that the first one has loaded.
  void Load(const std::function<void(Optimizer&)>& load) { load(*optimizer_); }

 private:
  struct Recorded;

  void RunBackward(const Tensor& dy, const DeviceBackward& backward,
                   Recorded& recorded);
  void SendInputGradient(const DeviceBackward& backward,
                         const Tensor& gradient);
  void Run(const DeviceForward& forward, Tensor input, Recorded& recorded);
  void SetTrained(const std::vector<bool>& trained);

  Rank& rank_;
  const Model<nn::Module> model_;
  const std::vector<nn::Parameter*> parameters_;
  DeviceExchange exchange_;
  std::optional<Optimizer> optimizer_;
  std::map<std::int64_t, std::unique_ptr<Recorded>> recorded_;
};

// The replicas of a rank's models on one of its further devices.
class DeviceReplicas {
 public:
  explicit DeviceReplicas(Rank& rank) : rank_(rank) {}

  Rank& rank() { return rank_; }
  void Add(int model, std::unique_ptr<DeviceReplica> replica) {
    replicas_[model] = std::move(replica);
  }
  DeviceReplica& of(int model) { return *replicas_.at(model); }
  void Remove(int model) { replicas_.erase(model); }

 private:
  Rank& rank_;
  std::map<int, std::unique_ptr<DeviceReplica>> replicas_;
};

// Runs the tasks of `line` up to the end of the program.
void FollowProgram(Rank& rank, DeviceLine& line);

}  // namespace troupe

#endif  // TROUPE_DEVICES_DEVICE_REPLICA_H_

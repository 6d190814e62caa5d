// The model of a DataParallel (troupe/data_parallel.h) on the first device,
// which runs the program: it has the replicas on the others do what it does.
//
//     forward     parts of the input to all devices, outputs into one tensor
//     backward    parts of the output's gradient to all devices, which run
//                 their backward beside this one's; buckets are added up as in
//                 a DDP, and an input that is tracked gets its gradient
//     Step()      the same step on each device, at this one's learning rate
//
// A node of the tape stands for the other devices' parts of a forward.
//
// Errors: base::StatusError. Threads: the rank's own.

#ifndef TROUPE_DEVICES_DEVICE_LEADER_H_
#define TROUPE_DEVICES_DEVICE_LEADER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/autograd/var.h"
#include "nn/modules/module.h"
#include "troupe/devices/device_exchange.h"
#include "troupe/devices/device_replica.h"

namespace troupe {

class DeviceLeader {
 public:
  // Has all devices make a replica of `core`'s module with `make`. All
  // references outlive it.
  DeviceLeader(ModelCore& core, DeviceLines& lines,
               const nn::ModelFactory& make);
  ~DeviceLeader();

  Var Forward(const Var& x);
  // Begins a backward from `root`. `trains`: whether it computes gradients of
  // the model's parameters, which all devices then add up.
  void BeginBackward(const Tensor& root, bool trains);
  // Ends it: waits for the gradients.
  absl::Status EndBackward();
  void Step(const CallPlace& place, double rate);
  // Discards the gradients.
  void Discard() { steps_ = false; }

  void MakeOptimizer(const DeviceReplica::MakeOptimizerFn& make,
                     const std::vector<std::string>& only);
  // Calls load() on the optimizer of each other device.
  void Load(std::function<void(Optimizer&)> load);
  // Lets the next forward begin with this device's parameters, buffers and
  // states of the optimizer on all devices.
  void ShareState() { shares_state_ = true; }

 private:
  struct Parts;
  struct Shared;
  class GatherNode;
  class InputNode;
  using PartsPtr = std::shared_ptr<Parts>;
  using Outputs = std::vector<std::shared_ptr<DeviceOutput>>;

  // Gives all other devices a task.
  void Post(std::function<void(DeviceReplica&)> task);
  // Returns an answer of each other device, and handles of them for a task: an
  // answer is complete when these have ended, whether the task was run or not.
  std::pair<Outputs, Outputs> MakeOutputs() const;
  Outputs PostForward(const Parts& parts, const Tensor& input);
  // Returns this device's part of the input.
  Var OwnInput(const Var& x, const PartsPtr& parts);
  // Waits for the answers of devices that have rows. An error is the first one,
  // with its device. Returns their parts behind this device's, which is `own`.
  absl::StatusOr<std::vector<Tensor>> Await(
      const Outputs& outputs, const Tensor& own,
      const std::vector<std::int64_t>& rows);
  // Whether the backward has come to all forwards of all models of the rank.
  bool IsLastOfAll() const;
  // Returns this device's part of an output's gradient, after it has given the
  // others theirs.
  absl::StatusOr<Tensor> ScatterGradient(Parts& parts, const Tensor& dy);
  // Returns the gradient of an input, of which this device's part is `own`.
  absl::StatusOr<Tensor> GatherGradient(const Parts& parts, const Tensor& own);

  ModelCore& core_;
  Rank& rank_;
  DeviceLines& lines_;
  const int number_;  // number of the model
  const std::vector<nn::Parameter*> parameters_;
  DeviceExchange exchange_;
  const std::shared_ptr<Shared> shared_;
  std::int64_t forwards_ = 0;  // number of forwards so far
  bool shares_state_ = true;
  bool steps_ = false;  // whether there are gradients for a step
  // The backward that runs.
  struct {
    bool trains = false;
    int forwards = 0;       // number of those that it goes through
    int forwards_left = 0;  // number of those that it has not come to
  } backward_;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_DEVICE_LEADER_H_

// Interface of a model to what trains it, and to its rank: a module with its
// gradients (model_core.h), or the stages of a pipeline (pipeline_core.h).
//
//   OptimizableCore& core = model.optimizable();
//   core.Attach([] { return std::make_unique<nn::Sgd>(options); });
//   core.ZeroGrad();
//   core.Step(CallPlace::Here(), /*rate=*/std::nullopt);
//
// Errors: base::StatusError. Threads: the rank's own.

#ifndef TROUPE_INTERNAL_OPTIMIZABLE_CORE_H_
#define TROUPE_INTERNAL_OPTIMIZABLE_CORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nn/optim/optimizer.h"
#include "troupe/rank.h"

namespace troupe {

class DeviceLeader;  // troupe/devices/device_leader.h

class OptimizableCore {
 public:
  // Sets the rate of the step to come, to the given one or that of the
  // optimizer, and returns it.
  using UseRate = std::function<double(std::optional<double> rate)>;

  virtual ~OptimizableCore() = default;

  virtual Rank& rank() = 0;
  // Returns the names of the parameters that are trained, on all ranks that
  // hold parts of the model.
  virtual std::vector<std::string> TrainedNames() = 0;

  // Makes the optimizers of this rank's parameters, one for each dtype of each
  // part.
  virtual void Attach(
      const std::function<std::unique_ptr<nn::Optimizer>()>& make) = 0;
  virtual void SetUseRate(UseRate use) = 0;
  // Returns the number of the engine's next step, for the optimizers' rates.
  virtual std::int64_t step() const = 0;
  // Updates the parameters. With `rate` the step has that learning rate, and
  // not the optimizer's next one.
  virtual void Step(const CallPlace& place, std::optional<double> rate) = 0;
  virtual void ZeroGrad() = 0;

  // The step of the random draws to come.
  virtual std::int64_t draws() = 0;
  virtual void SetDraws(std::int64_t step) = 0;

  // The replicas on other devices of its rank, which do what it does; null:
  // there are none.
  virtual DeviceLeader* leader() { return nullptr; }

  // Whether reductions are under way.
  virtual bool reduces() const = 0;
  // Waits for their end.
  virtual void Finish() = 0;
  // Ends them with `why` on all ranks: peers use the memory no more.
  virtual void Abandon(const absl::Status& why) = 0;
};

}  // namespace troupe

#endif  // TROUPE_INTERNAL_OPTIMIZABLE_CORE_H_

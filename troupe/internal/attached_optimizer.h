// The optimizer of a model, as the model sees it: whether there is one, the
// rates of its steps, and the f32 copies that it keeps of 16-bit parameters
// (master_values.h).
//
//   AttachedOptimizer optimizer;              // none yet
//   optimizer.OnRead(parameter, read, kernels, engine.parameters());  // Load()
//   optimizer.Attach(make, rank, engine);     // fills its copies from the file
//   optimizer.set_use_rate(use);
//   optimizer.TakeRate(/*rate=*/std::nullopt);      // of the step to come
//
// Errors: base::StatusError. Threads: the rank's own.

#ifndef TROUPE_INTERNAL_ATTACHED_OPTIMIZER_H_
#define TROUPE_INTERNAL_ATTACHED_OPTIMIZER_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "actors/chunks/chunk_parameters.h"
#include "actors/engine/loop/loop_engine.h"
#include "nn/autograd/parameter.h"
#include "nn/kernels/kernels.h"
#include "nn/optim/optimizer.h"
#include "troupe/internal/master_values.h"
#include "troupe/rank.h"
#include "troupe/state.h"

namespace troupe {

class AttachedOptimizer {
 public:
  using UseRate = std::function<double(std::optional<double> rate)>;

  // Makes the optimizer of `engine`, and fills its copies: from files that were
  // read before, and after ShareValues() with those of that rank.
  void Attach(const std::function<std::unique_ptr<nn::Optimizer>()>& make,
              Rank& rank, actors::LoopEngine& engine);
  bool attached() const { return attached_; }

  // Notes that all ranks along dp have the parameters of rank `root` of these.
  void ShareValues(int root) { values_root_ = root; }
  // See SavedModel::WatchReads().
  void OnRead(const nn::Parameter& parameter, SavedModel::ReadFn read,
              nn::Kernels& kernels, const actors::ChunkParameters& parameters);

  // Takes a function that sets the rate of the step to come, to the given one
  // or that of the optimizer, and returns it.
  void set_use_rate(UseRate use) { use_rate_ = std::move(use); }
  // Sets the rate of the step to come; unset: the optimizer's next one.
  void TakeRate(std::optional<double> rate) {
    if (use_rate_) last_rate_ = use_rate_(rate);
  }
  // The rate of the last TakeRate().
  double last_rate() const { return last_rate_; }

 private:
  bool attached_ = false;
  MasterReads master_reads_;
  // Rank along dp whose parameters all have; unset: each has its own.
  std::optional<int> values_root_;
  UseRate use_rate_;
  double last_rate_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_INTERNAL_ATTACHED_OPTIMIZER_H_

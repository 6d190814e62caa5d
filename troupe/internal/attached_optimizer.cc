#include "troupe/internal/attached_optimizer.h"

#include "base/status_error.h"
#include "nn/tensor/tensor.h"
#include "troupe/group.h"

namespace troupe {

void AttachedOptimizer::Attach(
    const std::function<std::unique_ptr<nn::Optimizer>()>& make, Rank& rank,
    actors::LoopEngine& engine) {
  base::OrThrow(engine.AttachOptimizer(make));
  attached_ = true;
  const actors::ChunkParameters& parameters = engine.parameters();
  master_reads_.Attach(parameters, rank.kernels());
  if (!values_root_.has_value()) return;
  // Ranks may have read files or not.
  for (int i = 0; i < parameters.num_arenas(); ++i) {
    const nn::Tensor* const master = MasterValuesOf(parameters.arena(i));
    if (master != nullptr) rank.Axis("dp").Broadcast(*master, *values_root_);
  }
}

void AttachedOptimizer::OnRead(const nn::Parameter& parameter,
                               SavedModel::ReadFn read, nn::Kernels& kernels,
                               const actors::ChunkParameters& parameters) {
  master_reads_.Add(parameter, std::move(read), kernels,
                    attached_ ? &parameters : nullptr);
}

}  // namespace troupe

#include "troupe/model.h"

#include <utility>

#include "absl/status/status.h"
#include "base/event.h"
#include "base/status_error.h"
#include "nn/arena/parameter_arena.h"
#include "troupe/group.h"
#include "troupe/internal/model_core.h"

namespace troupe {

Rank& Optimizable::rank() const { return optimizable_->rank(); }

Trainable::Trainable(std::shared_ptr<ModelCore> core)
    : Optimizable(core), core_(std::move(core)) {}

Var Trainable::operator()(const Var& x) const { return core_->Forward(x); }

nn::Module& Trainable::module() const { return core_->module(); }

std::function<void(SavedModel::ReadFn read)> Trainable::WatchReads(
    const nn::Parameter& parameter) const {
  return [core = std::weak_ptr<ModelCore>(core_),
          &parameter](SavedModel::ReadFn read) {
    const std::shared_ptr<ModelCore> locked = core.lock();
    if (locked != nullptr) locked->OnRead(parameter, std::move(read));
  };
}

std::shared_ptr<ModelCore> PlaceModule(Rank& rank,
                                       std::unique_ptr<nn::Module> module) {
  if (module == nullptr) {
    throw base::StatusError(absl::InvalidArgumentError(
        "the std::unique_ptr of a model's module is null; pass a module"));
  }
  // Peers use the gradients until their reductions have ended, which the end of
  // the program waits for, as for all that was started in its groups.
  const auto end = [](ModelCore* core) {
    std::unique_ptr<ModelCore> ended(core);
    if (core->reduces()) core->rank().FinishLater(std::move(ended));
  };
  return std::shared_ptr<ModelCore>(new ModelCore(rank, std::move(module)),
                                    end);
}

void AverageGradients(const Trainable& model, CallPlace place) {
  actors::LoopEngine& engine = model.core().engine();
  base::OrThrow(engine.AwaitGradients());
  const actors::ChunkParameters& parameters = engine.parameters();
  for (int i = 0; i < parameters.num_arenas(); ++i) {
    const nn::ParameterArena& arena = parameters.arena(i);
    for (int k = 0; k < arena.num_buckets(); ++k) {
      model.rank().world().AllReduce(arena.BucketGrads(k), ReduceOp::kAvg,
                                     place);
    }
  }
  // A parameter that another rank has used has a gradient here, too.
  actors::UseMarks& uses = engine.uses();
  model.rank().world().AllReduce(base::OrThrow(uses.Publish()), ReduceOp::kSum,
                                 place);
  uses.NoteSummed(base::Event());
  base::OrThrow(uses.TakeSum());
}

}  // namespace troupe

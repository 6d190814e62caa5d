#include "troupe/pipeline_parallel.h"

#include <functional>

#include "troupe/stages/pipeline_core.h"

namespace troupe {
namespace {

std::shared_ptr<PipelineCore> MakeCore(Rank& rank, const actors::JobModel& make,
                                       const PipelineOptions& options) {
  // Peers use the gradients until their reductions have ended.
  const auto end = [](PipelineCore* core) {
    std::unique_ptr<PipelineCore> ended(core);
    if (core->reduces()) core->rank().FinishLater(std::move(ended));
  };
  return std::shared_ptr<PipelineCore>(new PipelineCore(rank, make, options),
                                       end);
}

// A stage whose optimizer may have wider copies of its parameters.
class SavedStage : public SavedModel {
 public:
  SavedStage(const std::shared_ptr<PipelineCore>& core, int chunk)
      : core_(core), chunk_(chunk), module_(*core->stages()[chunk]) {}

  nn::Module& module() const override { return module_; }
  std::function<void(ReadFn read)> WatchReads(
      const nn::Parameter& parameter) const override {
    return [core = core_, chunk = chunk_, &parameter](ReadFn read) {
      const std::shared_ptr<PipelineCore> locked = core.lock();
      if (locked != nullptr) locked->OnRead(chunk, parameter, std::move(read));
    };
  }

 private:
  const std::weak_ptr<PipelineCore> core_;
  const int chunk_;
  nn::Module& module_;
};

}  // namespace

PipelineParallel::PipelineParallel(Rank& rank, const actors::JobModel& make,
                                   const PipelineOptions& options)
    : PipelineParallel(MakeCore(rank, make, options)) {}

PipelineParallel::PipelineParallel(std::shared_ptr<PipelineCore> core)
    : Optimizable(core), core_(std::move(core)) {}

double PipelineParallel::Run(const Tensor& inputs, const Tensor& targets,
                             const actors::JobLoss& loss, CallPlace place) {
  return core_->Run(inputs, targets, loss, place);
}

double PipelineParallel::Evaluate(const Tensor& inputs, const Tensor& targets,
                                  const actors::JobLoss& loss,
                                  CallPlace place) {
  return core_->Evaluate(inputs, targets, loss, place);
}

Tensor PipelineParallel::Predict(const Tensor& inputs, CallPlace place) {
  return core_->Predict(inputs, place);
}

std::vector<nn::Module*> PipelineParallel::stages() const {
  return core_->stages();
}

std::vector<nn::Parameter*> PipelineParallel::Parameters() const {
  std::vector<nn::Parameter*> all;
  for (nn::Module* stage : stages()) {
    const std::vector<nn::Parameter*> own = stage->Parameters();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

void PipelineParallel::AddTo(State& state) const {
  const int number = static_cast<int>(stages().size());
  for (int chunk = 0; chunk < number; ++chunk) {
    state.Add(SavedStage(core_, chunk));
  }
}

bool PipelineParallel::is_last() const { return core_->engine().has_outputs(); }

std::string PipelineParallel::ToString() const {
  return core_->engine().plan().ToString();
}

}  // namespace troupe

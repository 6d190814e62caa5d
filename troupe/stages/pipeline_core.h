// The stages of a pipeline on one rank: their step engine
// (actors/engine/loop/pipeline_engine.h), its collectives under way, and the
// tensors that it exchanges with other stages.
//
// Threads: the rank's own.

#ifndef TROUPE_STAGES_PIPELINE_CORE_H_
#define TROUPE_STAGES_PIPELINE_CORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "actors/chunks/step/step_types.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/fiber/strand_wait.h"
#include "actors/engine/loop/pipeline_engine.h"
#include "actors/engine/rank_groups.h"
#include "actors/spec/job_fields.h"
#include "actors/spec/job_spec.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "nn/autograd/parameter.h"
#include "nn/modules/module.h"
#include "nn/optim/optimizer.h"
#include "nn/tensor/tensor.h"
#include "pipeline/plan.h"
#include "troupe/internal/master_values.h"
#include "troupe/internal/optimizable_core.h"
#include "troupe/internal/started_collectives.h"
#include "troupe/pipeline_parallel.h"
#include "troupe/rank.h"
#include "troupe/stages/stage_messages.h"
#include "troupe/state.h"

namespace troupe {

class PipelineCore : public OptimizableCore,
                     private actors::EngineHost,
                     private actors::StrandWait {
 public:
  PipelineCore(Rank& rank, const actors::JobModel& make,
               const PipelineOptions& options);
  ~PipelineCore() override;

  // See PipelineParallel.
  double Run(const Tensor& inputs, const Tensor& targets,
             const actors::JobLoss& loss, const CallPlace& place);
  double Evaluate(const Tensor& inputs, const Tensor& targets,
                  const actors::JobLoss& loss, const CallPlace& place);
  Tensor Predict(const Tensor& inputs, const CallPlace& place);
  std::vector<nn::Module*> stages();
  // See SavedModel::WatchReads(). `parameter` is one of chunk `chunk`, whose
  // module is stages()[chunk].
  void OnRead(int chunk, const nn::Parameter& parameter,
              SavedModel::ReadFn read);
  actors::PipelineEngine& engine() { return *engine_; }

  // OptimizableCore:
  Rank& rank() override { return rank_; }
  std::vector<std::string> TrainedNames() override;
  void Attach(
      const std::function<std::unique_ptr<nn::Optimizer>()>& make) override;
  void SetUseRate(UseRate use) override { use_rate_ = std::move(use); }
  std::int64_t step() const override { return engine_->step(); }
  void Step(const CallPlace& place, std::optional<double> rate) override;
  void ZeroGrad() override;
  std::int64_t draws() override { return engine_->step(); }
  void SetDraws(std::int64_t step) override { engine_->set_step(step); }
  bool reduces() const override { return !started_.empty(); }
  void Finish() override;
  void Abandon(const absl::Status& why) override;

 private:
  void MakeEngine();
  // Checks a call's tensors, and returns them by micro-batch. A tensor that
  // this rank does not read is left out.
  actors::StepBatches Batches(const Tensor& inputs, const Tensor* targets);
  void SetLoss(const actors::JobLoss& loss);
  // Checks that an evaluation may begin, and prepares it.
  absl::Status BeginEvaluation();
  // Runs the forward of all micro-batches, each of which `visit` follows.
  void Evaluate(actors::StepKind kind, actors::StepBatches batches,
                const std::function<void(const actors::LossBits&)>& visit);
  // Waits until what was sent may be used again.
  void AwaitSent();
  // Passes on to the engine what has ended or come. Returns whether there was
  // something. Throws the error of what failed.
  bool TakeWhatCame();

  // EngineHost:
  void Launch(int action, pipeline::GroupId group,
              const comm::Collective& collective,
              const comm::Event& after) override;
  void Send(int stage, bool forward, int micro_batch,
            const nn::TensorList& tensors, const base::Event& ready) override;
  // StrandWait:
  void AwaitNews() override;
  void TakeNews(bool expected) override;
  absl::Status RunInline(comm::Communicator& comm,
                         const comm::Collective& collective) override;

  Rank& rank_;
  const Shape batch_;  // shape of a replica's inputs in one Run()
  actors::JobSpec spec_;
  pipeline::Plan plan_;
  actors::RankGroups groups_;
  StartedCollectives started_;
  std::unique_ptr<StageMessages> messages_;
  std::unique_ptr<actors::PipelineEngine> engine_;
  std::vector<MasterReads> master_reads_;  // one for each chunk
  bool has_optimizer_ = false;
  UseRate use_rate_;
};

}  // namespace troupe

#endif  // TROUPE_STAGES_PIPELINE_CORE_H_

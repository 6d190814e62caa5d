// The common part of a loop's models: a module, the step engine that trains it
// (actors/engine/loop), and the collectives under way.
//
// Threads: the rank's own.

#ifndef TROUPE_INTERNAL_MODEL_CORE_H_
#define TROUPE_INTERNAL_MODEL_CORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/fiber/strand_wait.h"
#include "actors/engine/loop/loop_engine.h"
#include "actors/engine/rank_groups.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "nn/modules/module.h"
#include "nn/optim/optimizer.h"
#include "nn/tensor/dtype.h"
#include "pipeline/buckets.h"
#include "troupe/comm_hook.h"
#include "troupe/internal/attached_optimizer.h"
#include "troupe/internal/join_membership.h"
#include "troupe/internal/optimizable_core.h"
#include "troupe/internal/started_collectives.h"
#include "troupe/rank.h"
#include "troupe/state.h"

namespace troupe {

// How a DDP reduces the gradients of its model (DDPOptions).
struct Distribution {
  pipeline::BucketOptions buckets;
  bool exact_mean = false;
  bool static_graph = false;
  // Whether gradients are added up in place of averaged, always by number of
  // the bucket: those of a DataParallel.
  bool sums = false;
  std::optional<nn::DType> reduction_dtype;
  // See pipeline::ParameterPlanOptions.
  std::vector<std::int64_t> bucket_limits;
  std::vector<std::string> delayed;
};

class DeviceLeader;  // troupe/devices/device_leader.h
class HookRunner;    // troupe/internal/hook_runner.h

class ModelCore : public OptimizableCore,
                  private actors::EngineHost,
                  private actors::StrandWait {
 public:
  ModelCore(Rank& rank, std::unique_ptr<nn::Module> module);
  // Aborts the reductions under way, as Abandon() does.
  ~ModelCore() override;

  Rank& rank() override { return rank_; }
  nn::Module& module() { return *module_; }
  actors::LoopEngine& engine() { return *engine_; }
  bool Owns(const nn::Parameter* parameter) const;
  // Whether no parameter has requires_grad.
  bool frozen() const;

  // Makes the gradients reduced over `ranks`, which have this one, from now on,
  // in these buckets. The values stay. Throws if there is an optimizer.
  void Distribute(const Distribution& distribution,
                  const std::vector<int>& ranks);
  bool distributed() const { return distributed_; }
  // Lets the model have replicas on other devices, which do what it does.
  void Lead(std::unique_ptr<DeviceLeader> leader);
  DeviceLeader* leader() override { return leader_.get(); }
  // Lets a communication hook reduce the gradients from now on. All ranks along
  // dp call it: the hook gets a group of its own. Throws if there is one
  // already.
  void SetHook(CommHook hook);
  // Ends action `action` of the present step when `done`, of something that was
  // started in `group`, has completed and `then`, unless it is null, has run.
  void Follow(int action, comm::Communicator& group, const base::Event& done,
              std::function<absl::Status()> then);
  // Whether a backward reduces gradients.
  void set_synced(bool synced) { synced_ = synced; }
  bool synced() const { return synced_; }
  // Sets what makes the replicas' buffers equal before a training forward whose
  // backward is synced; null: nothing.
  void set_sync_buffers(std::function<void(const ActiveRanks&)> sync) {
    sync_buffers_ = std::move(sync);
  }
  void SyncBuffers() {
    if (sync_buffers_) sync_buffers_(membership_.active());
  }
  // Runs the module's forward on `x`.
  Var Forward(const Var& x);

  // OptimizableCore:
  bool reduces() const override { return !started_.empty(); }
  void Finish() override;
  void Abandon(const absl::Status& why) override;
  std::vector<std::string> TrainedNames() override;
  void Attach(
      const std::function<std::unique_ptr<nn::Optimizer>()>& make) override {
    optimizer_.Attach(make, rank_, *engine_);
  }
  void SetUseRate(UseRate use) override {
    optimizer_.set_use_rate(std::move(use));
  }
  std::int64_t step() const override { return engine_->step(); }
  void Step(const CallPlace& place, std::optional<double> rate) override;
  void ZeroGrad() override;
  std::int64_t draws() override;
  void SetDraws(std::int64_t step) override;

  JoinMembership& membership() { return membership_; }
  const JoinMembership& membership() const { return membership_; }
  // Gives all ranks along dp the parameters of rank `root` of these, as one
  // range for each dtype.
  void BroadcastParameters(int root);
  AttachedOptimizer& optimizer() { return optimizer_; }
  const AttachedOptimizer& optimizer() const { return optimizer_; }
  // See SavedModel::WatchReads().
  void OnRead(const nn::Parameter& parameter, SavedModel::ReadFn read);
  // Runs the backward of a loss that depends on the parameters of these models,
  // of which there is one at least.
  static absl::Status Backward(absl::Span<ModelCore* const> models,
                               const nn::BackwardRoot& root);
  // Whether ZeroGrad() was called since the last backward.
  bool discarded() const { return discarded_; }

 private:
  static absl::Status RunBackward(absl::Span<ModelCore* const> models,
                                  const nn::BackwardRoot& root);
  void MakeEngine(const Distribution& distribution,
                  const std::vector<int>& ranks);
  // Ends the collectives that are complete. Returns whether there was one.
  // Throws the error of one that failed.
  bool EndSome();
  // Returns the rank's models that have collectives under way, this one first:
  // a peer may wait for those of another model. Leaves out those whose hook
  // waits.
  std::vector<ModelCore*> ModelsInFlight();

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
  const std::unique_ptr<nn::Module> module_;
  std::vector<nn::Parameter*> parameters_;  // sorted by address
  actors::RankGroups groups_;
  std::unique_ptr<HookRunner> hook_;  // null: all-reduces
  std::unique_ptr<actors::LoopEngine> engine_;
  StartedCollectives started_;
  bool distributed_ = false;
  AttachedOptimizer optimizer_;
  bool synced_ = true;
  std::function<void(const ActiveRanks&)> sync_buffers_;
  JoinMembership membership_;
  bool discarded_ = false;
  std::unique_ptr<DeviceLeader> leader_;  // null: the rank has one device
};

}  // namespace troupe

#endif  // TROUPE_INTERNAL_MODEL_CORE_H_

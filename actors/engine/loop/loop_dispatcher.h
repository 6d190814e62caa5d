// The Dispatcher of a hand-written loop (dispatcher.h), with the losses and the
// table that belong to it. They depend on the optimizer and the hook: the loop
// makes another one when it gets either. A pipeline's loop gives its own tables
// (pipeline_engine.h).
//
//   LoopDispatcher::Options options;
//   options.order = {0, 1, 2};                  // of three buckets
//   TROUPE_ASSIGN_OR_RETURN(auto dispatcher,
//                           LoopDispatcher::Create(options, parts));
//   TROUPE_RETURN_IF_ERROR(dispatcher->get().Walk());
//   TROUPE_RETURN_IF_ERROR(dispatcher->TakeLosses());
//   dispatcher->Reorder({2, 0, 1});
//
// Threads: one at a time.

#ifndef ACTORS_ENGINE_LOOP_LOOP_DISPATCHER_H_
#define ACTORS_ENGINE_LOOP_LOOP_DISPATCHER_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/step/loss_scaler.h"
#include "actors/chunks/step/step_types.h"
#include "actors/engine/dispatcher.h"
#include "actors/engine/loop/bucket_hook.h"
#include "actors/engine/owned_parts.h"
#include "actors/engine/step_in_flight.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

class LoopDispatcher {
 public:
  struct Options {
    bool exact_mean = false;     // LoopEngine::Setup
    BucketHook* hook = nullptr;  // null: all-reduces
    std::vector<int> order;      // buckets as they are reduced
    // The tables; none: those of a loop without stages, LoopTable().
    std::optional<Dispatcher::Options> tables = std::nullopt;
  };

  // `parts`, which has the loop's model, outlives it.
  //   kResourceExhausted: there is no memory for the losses.
  static absl::StatusOr<std::unique_ptr<LoopDispatcher>> Create(
      const Options& options, OwnedParts& parts);

  Dispatcher& get() { return *dispatcher_; }
  const Dispatcher& get() const { return *dispatcher_; }

  // Reduces buckets in this order from now on, in a loop without stages. No
  // step may be under way in which reductions have begun.
  void Reorder(const std::vector<int>& order);
  // Returns the next losses (StepLosses::Take).
  absl::StatusOr<std::optional<LossBits>> TakeLoss() { return losses_->Take(); }
  // Takes the losses of ended steps, which a program has itself. A device
  // returns its errors here.
  absl::Status TakeLosses();

 private:
  LoopDispatcher(const Options& options, OwnedParts& parts)
      : options_(options), parts_(parts) {}
  absl::Status Init();
  // Returns the table of a step of a loop without stages.
  pipeline::StepTable Table() const;

  Options options_;
  OwnedParts& parts_;
  std::unique_ptr<LossScaler> scaler_;  // null if no step may be skipped
  std::optional<StepLosses> losses_;
  std::optional<Dispatcher> dispatcher_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_LOOP_LOOP_DISPATCHER_H_

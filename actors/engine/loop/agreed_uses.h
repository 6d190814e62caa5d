// The parameters that the ranks of a hand-written loop have used in a step, so
// that all of them leave out the same ones in its update.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       auto uses, AgreedUses::Create({/*ranks=*/2}, parameters, kernels));
//   uses->EndBackward(/*synced=*/true);
//   // After the last collective of the table:
//   if (uses->due()) {
//     TROUPE_RETURN_IF_ERROR(uses->StartSum(step, reducer));
//   }
//   // Before the update:
//   TROUPE_RETURN_IF_ERROR(uses->LeaveOut(step, [&] { return Await(*uses); }));
//   // After it:
//   TROUPE_RETURN_IF_ERROR(uses->CountLeftOut(scalars, queue));
//
// The ranks add up their marks (use_marks.h) by one small all-reduce after each
// backward that reduces. A rank that has used all parameters does not wait for
// it. With Options::static_graph only the first step has that all-reduce, and
// LeaveOut() checks the promise (static_uses.h).
//
// Threads: one at a time.

#ifndef ACTORS_ENGINE_LOOP_AGREED_USES_H_
#define ACTORS_ENGINE_LOOP_AGREED_USES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/chunk_parameters.h"
#include "actors/chunks/static_uses.h"
#include "actors/chunks/use_marks.h"
#include "actors/engine/loop/side_collective.h"
#include "actors/engine/reducer.h"
#include "base/event.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class AgreedUses {
 public:
  struct Options {
    int ranks = 1;  // number of those along dp
    bool static_graph = false;
  };

  // Both references outlive it.
  //   kResourceExhausted: there is no memory for the marks.
  static absl::StatusOr<std::unique_ptr<AgreedUses>> Create(
      const Options& options, ChunkParameters& parameters,
      nn::Kernels& kernels);

  UseMarks& marks() { return *marks_; }

  // Notes the end of a backward. If it is synced, its sum is due.
  void EndBackward(bool synced) {
    due_ = synced && options_.ranks > 1 && !static_.has_value();
  }
  bool due() const { return due_; }
  absl::Status StartSum(std::int64_t step, Reducer& reducer);
  // Ends the sum; its result may be read once `done` has completed.
  void EndSum(const base::Event& done, Reducer& reducer);
  const SideCollective& sum() const { return sum_; }
  // Whether a sum is due or in flight.
  bool waits() const { return due_ || sum_.in_flight(); }

  // Lets the updates of step `step`, counted from 0, leave out what no rank has
  // used. Calls `await`, which returns when waits() is false, before it reads
  // the sum.
  //   kFailedPrecondition: with static_graph, other parameters than in the
  //   first step.
  absl::Status LeaveOut(std::int64_t step,
                        absl::FunctionRef<absl::Status()> await);
  // Ends a step whose updates have left out parameters: their states are as old
  // as before (BucketUpdates::CountLeftOut), unless the step was skipped.
  // `scalars`: the step's, which queue `updates` writes. It waits for that
  // queue if the optimizer may skip steps.
  absl::Status CountLeftOut(const nn::Tensor& scalars, nn::Queue updates);

 private:
  AgreedUses(const Options& options, ChunkParameters& parameters,
             nn::Kernels& kernels, std::unique_ptr<UseMarks> marks);

  const Options options_;
  ChunkParameters& parameters_;
  nn::Kernels& kernels_;
  const std::unique_ptr<UseMarks> marks_;
  bool due_ = false;
  SideCollective sum_;
  std::optional<StaticUses> static_;  // set by the first step of static_graph
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_LOOP_AGREED_USES_H_

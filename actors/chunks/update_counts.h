// The number of updates that each parameter's optimizer states have had
// (PyTorch's state["step"]), on which Adam's bias corrections and SGD's first
// step depend. A parameter that was frozen, or that the checkpoint lacked, is
// younger than the run.
//
//   UpdateCounts counts;                        // all begin with the run
//   TROUPE_RETURN_IF_ERROR(counts.Restore(checkpoint, arena, updates));
//   optimizer->SetFirstUpdates(arena, counts.first_updates());
//   TROUPE_RETURN_IF_ERROR(
//       counts.CopyInto(arena, scalars, left_out, kernels, shard));
//
// A count is the run's number of updates (StepScalars::step) less the number of
// those that did not update the parameter. In a job that number never changes,
// since each trained parameter is updated in the same steps. Checkpoints have
// the count of "0.weight" as "0.weight.step", f64 of shape [], if it is not the
// run's number.
//
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_UPDATE_COUNTS_H_
#define ACTORS_CHUNKS_UPDATE_COUNTS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "actors/checkpoint/checkpoint.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

// Name of a parameter's count among its states.
inline constexpr char kUpdateCountState[] = "step";

class UpdateCounts {
 public:
  // Reads the counts of the arena's parameters. `updates` is the number of the
  // run's updates so far. Before counts were saved
  // (TrainerState::has_update_counts), all states were taken to be as old as
  // their run; of these, states of zeros count as new here, since they are
  // those of a parameter that was frozen.
  //   Errors: those of Checkpoint::ReadOptimizer().
  absl::Status Restore(const Checkpoint& checkpoint,
                       const nn::ParameterArena& arena, double updates);
  // Records that the run's last update has left out the slots with
  // left_out[slot] true, one element for each slot.
  void LeaveOut(const std::vector<bool>& left_out);
  // The run's update that is the first one of each slot, as if the parameter
  // had been updated in each one since then. Empty: all are 0.
  const std::vector<double>& first_updates() const { return first_updates_; }
  // Adds the counts that are not the run's number of updates to the optimizer's
  // tensors, except those of the parameters `left_out`. `scalars` holds
  // StepScalars on the device whose step is that number. The device's queue
  // kReadBack makes the copies.
  //   kResourceExhausted: there is no memory for them.
  absl::Status CopyInto(const nn::ParameterArena& arena,
                        const nn::Tensor& scalars,
                        const std::set<std::string>& left_out,
                        nn::Kernels& kernels, CheckpointShard& shard) const;

 private:
  std::vector<double> first_updates_;
  // Count of each slot, if it is frozen.
  std::vector<double> frozen_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_UPDATE_COUNTS_H_

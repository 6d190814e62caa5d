// A schedule is data: for each rank, an ordered table of actions, each with the
// signals it needs. One engine (actors/step_runner.h) runs every table.
//
//   StepTable table = DataParallelTable(/*micro_batches=*/2);
//   table.ToString();                        // "F0 B0 F1 B1"
//   table = AddReductions(table, /*buckets=*/2, {});
//   table.ToString();            // "F0 B0 F1 LR B1 AR0 UP0 AR1 UP1"
//
// Actions (m: micro-batch, k: bucket):
//   Fm  forward             Bm  backward, whole
//   Im  input gradients     Wm  weight gradients  (a backward split in two)
//   RAm receive activation  SAm send activation
//   RGm receive gradient    SGm send gradient
//   LR  all-reduce of the loss statistics
//   ARk all-reduce of bucket k            UPk update of bucket k
//   RUk both in one pass over memory (comm/replica_update.h)
//
// Tables are made in passes: compute (F, B), then transfers, then reductions.
// A table can be printed, parsed back, checked (Validate) and compared with an
// expected text in a test.
//
// The text carries order and kinds; the needs follow from them (WithNeeds), so
// that a table parsed from text equals the one that was printed.

#ifndef PIPELINE_SCHEDULE_H_
#define PIPELINE_SCHEDULE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::pipeline {

enum class ActionKind {
  kForward,
  kBackward,
  kBackwardInputs,
  kBackwardWeights,
  kRecvActivation,
  kSendActivation,
  kRecvGradient,
  kSendGradient,
  kReduceLoss,
  kReduceBucket,
  kUpdateBucket,
  kReduceUpdateBucket,
};

// What an action waits for.
enum class SignalKind {
  kDone,            // action `id` of this table is complete
  kBucketReady,     // bucket `id`: gradients complete for this step
  kBucketReleased,  // bucket `id`: no later action of the step reads it
  kBucketReduced,   // bucket `id`: summed over the dp group
  kAllReduced,      // every bucket is reduced
  kLossReduced,     // loss statistics summed: the divisor is known
};

struct Signal {
  SignalKind kind;
  int id = 0;

  friend bool operator==(const Signal& a, const Signal& b) {
    return a.kind == b.kind && a.id == b.id;
  }
};

struct Action {
  ActionKind kind = ActionKind::kForward;
  int index = 0;  // micro-batch, or bucket; 0 for LR
  std::vector<Signal> needs;

  std::string ToString() const;  // "F0"

  friend bool operator==(const Action& a, const Action& b) {
    return a.kind == b.kind && a.index == b.index && a.needs == b.needs;
  }
};

struct StepTable {
  std::vector<Action> actions;

  int micro_batches() const;
  int buckets() const;
  std::string ToString() const;
  // Index of the action, or -1.
  int Find(ActionKind kind, int index) const;

  friend bool operator==(const StepTable& a, const StepTable& b) {
    return a.actions == b.actions;
  }
};

// "F0 B0 F1 B1": accumulation over m micro-batches, then one update.
StepTable DataParallelTable(int micro_batches);

// GPipe (Huang et al. 2019, arXiv:1811.06965): all forwards, then all
// backwards. Backwards keep micro-batch order, as every table does, so that
// sums keep theirs.
StepTable GPipeTable(int micro_batches);

// Adds RA/SG after and SA/RG around F and B for a stage that is not the first,
// not the last.
StepTable AddTransfers(const StepTable& compute, bool first_stage,
                       bool last_stage);

struct ReductionOptions {
  // The optimizer declares that it must see all reduced buckets first.
  bool update_needs_all_buckets = false;
  // RUk instead of ARk and UPk. It cannot begin before the last reader of the
  // bucket is done, so it is for reductions that overlap nothing anyway.
  bool fuse_updates = false;
};
// Adds LR after the last forward, and ARk, UPk (or RUk) in bucket order at the
// end.
StepTable AddReductions(const StepTable& table, int buckets,
                        const ReductionOptions& options);

// Sets the needs of every action from the kinds and order alone.
StepTable WithNeeds(StepTable table, const ReductionOptions& options);

// Reads ToString()'s text. kInvalidArgument names the word.
absl::StatusOr<StepTable> ParseTable(absl::string_view text,
                                     const ReductionOptions& options = {});

// kInvalidArgument where the table cannot run: an action twice or missing (a
// forward without backward, a bucket reduced but not updated), a need that
// nothing gives, or needs in a circle.
absl::Status Validate(const StepTable& table);

// All ranks' tables as a grid, one line a rank:
//   rank 0: F0 SA0 F1 SA1 ...
std::string ToGrid(const std::vector<StepTable>& tables);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULE_H_

// A schedule is data: for each rank, an ordered table of actions, each with the
// signals it needs. One engine (actors/engine/step_runner.h) runs every table.
//
//   StepTable table = DataParallelTable(/*micro_batches=*/2);
//   table.ToString();                        // "F0 B0 F1 B1"
//   table = AddReductions(table, /*buckets=*/2, {});
//   table.ToString();            // "F0 B0 F1 LR B1 AR0 UP0 AR1 UP1"
//
// Actions (m: micro-batch, k: bucket):
//     Fm  forward             Bm  backward, whole
//     Im  input gradients     Wm  weight gradients  (a backward split in two)
//     RAm receive activation  SAm send activation
//     RGm receive gradient    SGm send gradient
//     LR  all-reduce of the loss statistics
//     NR  all-reduce of what optimizers found in all gradients, over stages
//     TRk all-reduce of bucket k over the stages that share it, before ARk
//     ARk all-reduce of bucket k            UPk update of bucket k
//     RUk both in one pass over memory (comm/replica_update.h)
//
// A rank may hold several chunks of the model. Where a table has several, each
// word but LR and NR begins with the number of its chunk: "0F0 1F0 1B0 0B0".
//
// Tables are made in passes: compute (F, B), then transfers, then reductions.
// A table can be printed, parsed back, checked (Validate) and compared with an
// expected text in a test. Passes and checks are linear in the table.
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
#include "absl/types/span.h"

namespace troupe::pipeline {

// Limit on the number of a micro-batch or bucket.
inline constexpr int kActionIndexMax = 1 << 20;
// Limit on the chunks of a rank.
inline constexpr int kChunksMax = 1024;

// Each has its row in pipeline/action_rules.cc.
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
  kReduceFindings,
  kReduceTied,
  kReduceBucket,
  kUpdateBucket,
  kReduceUpdateBucket,
};

// What an action waits for. Buckets are those of the signal's chunk.
enum class SignalKind {
  kDone,            // action `id` of this table is complete
  kBucketReady,     // bucket `id`: gradients complete for this step
  kBucketReleased,  // bucket `id`: no later action of the step reads it
  kBucketReduced,   // bucket `id`: summed over the dp group
  kAllReduced,      // every bucket of every chunk is reduced
  kLossReduced,     // loss statistics summed: the divisor is known
};

struct Signal {
  SignalKind kind;
  int id = 0;
  int chunk = 0;  // of a bucket; otherwise 0

  friend bool operator==(const Signal& a, const Signal& b) {
    return a.kind == b.kind && a.id == b.id && a.chunk == b.chunk;
  }
};

struct Action {
  ActionKind kind = ActionKind::kForward;
  int index = 0;  // micro-batch, or bucket; 0 for LR and NR
  std::vector<Signal> needs;
  int chunk = 0;  // 0 for LR and NR

  // "F0"; "2F0" for chunk 2. Chunk 0 is named where the table has `chunks` > 1.
  std::string ToString(int chunks = 1) const;

  friend bool operator==(const Action& a, const Action& b) {
    return a.kind == b.kind && a.index == b.index && a.chunk == b.chunk &&
           a.needs == b.needs;
  }
};

// In which order a rank runs the compute actions of its table.
enum class Dispatch {
  kStrict,   // in the table's
  kArrival,  // the first of those that may run (activation_bound.h)
};

struct StepTable {
  std::vector<Action> actions;

  // Micro-batches of a step: the forwards of chunk 0.
  int micro_batches() const;
  // One more than the largest chunk; at least 1.
  int chunks() const;
  // Numbers of buckets, by chunk.
  std::vector<int> bucket_counts() const;
  // Number of buckets of all chunks.
  int buckets() const;
  std::string ToString() const;
  // Position of the action, or -1. Linear: a pass takes a TableIndex
  // (pipeline/table_index.h).
  int Find(ActionKind kind, int index, int chunk = 0) const;

  friend bool operator==(const StepTable& a, const StepTable& b) {
    return a.actions == b.actions;
  }
};

// "F0 B0 F1 B1": accumulation over m micro-batches, then one update.
StepTable DataParallelTable(int micro_batches);

// GPipe (Huang et al. 2019, arXiv:1811.06965): all forwards, then all
// backwards. Backwards keep micro-batch order, as every table does, so that
// sums keep theirs. Of several chunks, each takes all micro-batches before the
// next one begins (Lamy-Poirier 2022, arXiv:2211.05953).
StepTable GPipeTable(int micro_batches, int chunks = 1);

// Whether a chunk begins or ends the model.
struct ChunkEnds {
  bool first_stage = true;
  bool last_stage = true;
};
// Adds RA/SG after and SA/RG around F and B for a chunk that is not the first,
// not the last stage. `chunks`: one for each chunk of the table. Stages on one
// rank exchange messages as others do.
StepTable AddTransfers(const StepTable& compute,
                       absl::Span<const ChunkEnds> chunks);
// The same for tables of one chunk.
StepTable AddTransfers(const StepTable& compute, bool first_stage,
                       bool last_stage);

struct ReductionOptions {
  // The optimizer declares that it must see all reduced buckets first.
  bool update_needs_all_buckets = false;
  // What it sees is summed over the stages first (NR): where there are several,
  // and updates need all buckets.
  bool reduce_findings = false;
  // RUk instead of ARk and UPk. It cannot begin before the last reader of the
  // bucket is done, so it is for reductions that overlap nothing anyway.
  bool fuse_updates = false;
  // By chunk: how many of its buckets, the last ones, other stages share
  // (pipeline/ties.h); a chunk that is not listed shares none.
  std::vector<int> tied = {};
};
// Adds LR after the last forward, and ARk, UPk (or RUk) in bucket order at the
// end, last chunk first: its gradients are complete first; and NR behind them,
// where there is one. `buckets`: their number, by chunk. Where buckets are
// tied, their TRk stand before all ARk, and their ARk, which wait for another
// stage, behind those of all others.
StepTable AddReductions(const StepTable& table, absl::Span<const int> buckets,
                        const ReductionOptions& options);
// The same for tables of one chunk.
StepTable AddReductions(const StepTable& table, int buckets,
                        const ReductionOptions& options);

// Sets the needs of every action from the kinds and order alone.
StepTable WithNeeds(StepTable table, const ReductionOptions& options);

// Reads ToString()'s text. A word without a chunk's number is of chunk 0.
// kInvalidArgument names the word.
absl::StatusOr<StepTable> ParseTable(absl::string_view text,
                                     const ReductionOptions& options = {});

// kInvalidArgument where the table cannot run: an action twice or missing (a
// forward without backward, a bucket reduced but not updated), a need that
// nothing gives, or needs in a circle. Looks at one table: whether those of all
// ranks fit together, a simulation says.
absl::Status Validate(const StepTable& table);

// All ranks' tables as a grid, one line a rank:
//   rank 0: F0 SA0 F1 SA1 ...
std::string ToGrid(const std::vector<StepTable>& tables);
// Reads ToGrid()'s text. Lines that are empty or begin with # are left out.
// kInvalidArgument names the line, and the word.
absl::StatusOr<std::vector<StepTable>> ParseGrid(absl::string_view text);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULE_H_

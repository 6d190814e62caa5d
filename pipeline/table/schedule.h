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
//     NR  all-reduce of what optimizers computed from all gradients (norms),
//         over stages
//     TRk all-reduce of bucket k over the stages that share it, before ARk
//     ARk all-reduce of bucket k            UPk update of bucket k
//     RUk both in one pass over memory (comm/replica_update.h)
//     PNk all-reduce of the norms of bucket k's parameters, before UPk, where
//         each replica has slices of them, or each rank along tp pieces
//     AGk all-gather of the values of bucket k, where each replica has updated
//         a slice
//     GVk the same before uses of the bucket, where each replica keeps a slice
//     RLk release of the other slices, after the uses (add_gathers.h)
//
// A reduction may take several collectives, its *rounds*: AR0, the first one,
// is followed by AR0.1, AR0.2, ... A bucket is reduced when the last has ended.
// Rounds may be those of a communication hook, or one for each micro-batch.
// It may be gathered and released several times, in *turns*: GV0 RL0, then
// GV0.1 RL0.1, ...
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

#ifndef PIPELINE_TABLE_SCHEDULE_H_
#define PIPELINE_TABLE_SCHEDULE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace troupe::pipeline {

// Limit on the index of a micro-batch or bucket.
inline constexpr int kActionIndexMax = 1 << 20;
// Limit on the chunks of a rank.
inline constexpr int kChunksMax = 1024;
// Limit on the rounds of a reduction.
inline constexpr int kRoundsMax = 1024;

// Each kind has a row in pipeline/table/action_rules.cc.
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
  kReduceNorms,
  kGatherBucket,
  kGatherValues,
  kReleaseValues,
};
// Number of kinds.
inline constexpr int kActionKinds =
    static_cast<int>(ActionKind::kReleaseValues) + 1;

// Signals that actions wait for. Buckets are those of the signal's chunk.
enum class SignalKind {
  kDone,            // action `id` of this table is complete
  kBucketReady,     // bucket `id`: gradients complete for this step
  kBucketReleased,  // bucket `id`: no later action of the step reads it
  kBucketReduced,   // bucket `id`: summed over the dp group
  kAllReduced,      // every bucket of every chunk is reduced
  kLossReduced,     // loss statistics summed: the divisor is known
  kStepAsked,       // a loop's program has asked for the step's updates
};

struct Signal {
  SignalKind kind;
  int id = 0;
  int chunk = 0;  // chunk of the bucket; otherwise 0
  // Round of the reduction that kBucketReady allows: the micro-batch whose
  // gradients are complete, if each is reduced; otherwise 0.
  int round = 0;

  friend bool operator==(const Signal& a, const Signal& b) {
    return a.kind == b.kind && a.id == b.id && a.chunk == b.chunk &&
           a.round == b.round;
  }
};

struct Action {
  ActionKind kind = ActionKind::kForward;
  int index = 0;  // micro-batch, or bucket; 0 for LR and NR
  std::vector<Signal> needs;
  int chunk = 0;  // 0 for LR and NR
  int round = 0;  // collective of an AR, turn of GV and RL; 0 for other kinds

  // Returns "F0"; "2F0" for chunk 2; "AR0.1" for round 1. Chunk 0 is named if
  // `chunks` > 1, round 0 never.
  std::string ToString(int chunks = 1) const;

  friend bool operator==(const Action& a, const Action& b) {
    return a.kind == b.kind && a.index == b.index && a.chunk == b.chunk &&
           a.round == b.round && a.needs == b.needs;
  }
};

// Order in which a rank runs the compute actions of its table.
enum class Dispatch {
  kStrict,   // table order
  kArrival,  // the first action that may run (activation_bound.h)
};

struct StepTable {
  std::vector<Action> actions;

  // Returns the micro-batches of a step, which are the forwards of chunk 0.
  int micro_batches() const;
  // Returns one more than the largest chunk; at least 1.
  int chunks() const;
  // Returns the number of buckets of each chunk.
  std::vector<int> bucket_counts() const;
  // Returns the number of buckets of all chunks.
  int buckets() const;
  // Returns the largest number of rounds that a reduction has; at least 1.
  int rounds() const;
  std::string ToString() const;
  // Returns the position of the action, or -1. Linear: a pass uses a TableIndex
  // (pipeline/table/table_index.h).
  int Find(ActionKind kind, int index, int chunk = 0, int round = 0) const;

  friend bool operator==(const StepTable& a, const StepTable& b) {
    return a.actions == b.actions;
  }
};

// Returns "F0 B0 F1 B1": gradient accumulation over the micro-batches.
StepTable DataParallelTable(int micro_batches);

// GPipe (Huang et al. 2019, arXiv:1811.06965): all forwards, then all
// backwards. Backwards are in micro-batch order, as in every table, so that
// gradients are summed in one order. With several chunks, each runs all
// micro-batches before the next one begins (Lamy-Poirier 2022,
// arXiv:2211.05953).
StepTable GPipeTable(int micro_batches, int chunks = 1);

// Whether a chunk begins or ends the model.
struct ChunkEnds {
  bool first_stage = true;
  bool last_stage = true;
};
// Adds the transfers around F and B: RA and SG for a chunk that is not the
// first stage, SA and RG for one that is not the last. `chunks`: one for each
// chunk of the table. Stages on one rank exchange messages, too.
StepTable AddTransfers(const StepTable& compute,
                       absl::Span<const ChunkEnds> chunks);
// The same for tables of one chunk.
StepTable AddTransfers(const StepTable& compute, bool first_stage,
                       bool last_stage);

// Place of the gather of each bucket's updated values (AGk) in a table. The
// collectives of a group start in table order, so a reduction behind a gather
// waits for the update before that.
enum class GatherOrder {
  // The gathers stand behind all updates, in the order in which the next step's
  // forward reads the buckets: it may begin before the others are gathered.
  kAtEnd,
  // A gather stands behind the reduction of the next bucket, which runs during
  // the update.
  kBehindNext,
  // A gather stands behind the update of its bucket, which leaves the values in
  // a cache. It suits reductions that overlap with nothing.
  kBehindUpdate,
};

struct ReductionOptions {
  // Whether an update needs all reduced buckets, as the optimizer declares.
  bool update_needs_all_buckets = false;
  // Whether what it computes from all gradients is summed over the stages first
  // (NR). Used if there are several stages and updates need all buckets.
  bool reduce_findings = false;
  // Whether RUk takes the place of ARk and UPk. It cannot begin before the last
  // reader of the bucket has ended, so it suits reductions that overlap with
  // nothing.
  bool fuse_updates = false;
  // Number of buckets of each chunk, its last ones, that other stages share
  // (pipeline/ties.h); a chunk that is not listed shares none.
  std::vector<int> tied = {};
  // Number of rounds of each ARk.
  int rounds = 1;
  // Whether each micro-batch's gradients are reduced, in a round of its own.
  // Buckets that stages share are reduced once. Then `rounds` is 1.
  bool each_micro_batch = false;
  // Whether each replica updates a slice of each bucket (ZeRO), so that AGk
  // brings them together. ARk then is a reduce-scatter. Not with fuse_updates.
  bool gather_values = false;
  // Whether updates need sums over whole parameters (Optimizer::SumsParameters)
  // of which each replica has slices, or each rank along tp pieces, so that PNk
  // comes before UPk. Not with fuse_updates.
  bool sum_parameters = false;
  // Place of the AGk, and of the PNk before them. It is kAtEnd if updates need
  // all buckets.
  GatherOrder gather_order = GatherOrder::kAtEnd;
  // Whether a program asks for the updates of each step (LoopTable in
  // parameter_plan.h). They need kStepAsked, and the loss only if the table
  // reduces it.
  bool updates_on_request = false;
};
// Adds LR after the last forward, and ARk, UPk (or RUk) in bucket order at the
// end, last chunk first, since its gradients are complete first; AGk in their
// order among them; then NR, if there is one. `buckets`: number of buckets of
// each chunk. The TRk of tied buckets come before all ARk; the ARk of tied
// buckets, which wait for another stage, come after all others. If each
// micro-batch is reduced, the rounds of all but the last one stand behind its
// backward, and the TRk come after the rounds of the last one.
StepTable AddReductions(const StepTable& table, absl::Span<const int> buckets,
                        const ReductionOptions& options);
// The same for tables of one chunk.
StepTable AddReductions(const StepTable& table, int buckets,
                        const ReductionOptions& options);

// Sets the needs of every action from the kinds and order alone.
StepTable WithNeeds(StepTable table, const ReductionOptions& options);

// Reads the text of ToString(). A word without a chunk means chunk 0. Returns
// kInvalidArgument that names the wrong word.
absl::StatusOr<StepTable> ParseTable(absl::string_view text,
                                     const ReductionOptions& options = {});

// Returns kInvalidArgument if the table cannot run: an action is duplicate or
// missing (a forward without backward, a bucket reduced but not updated), no
// action gives a signal that another needs, or needs form a cycle. Checks one
// table; a simulation shows whether those of all ranks fit together.
absl::Status Validate(const StepTable& table);

// Returns all ranks' tables as a grid, one line a rank:
//   rank 0: F0 SA0 F1 SA1 ...
std::string ToGrid(const std::vector<StepTable>& tables);
// Reads the text of ToGrid(). Skips lines that are empty or begin with #.
// Returns kInvalidArgument that names the line and the wrong word.
absl::StatusOr<std::vector<StepTable>> ParseGrid(absl::string_view text);

}  // namespace troupe::pipeline

#endif  // PIPELINE_TABLE_SCHEDULE_H_

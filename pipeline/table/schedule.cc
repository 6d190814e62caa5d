#include "pipeline/table/schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/table_index.h"

namespace troupe::pipeline {
namespace {

void Append(StepTable& table, ActionKind kind, int index, int chunk,
            int round = 0) {
  table.actions.push_back({kind, index, {}, chunk, round});
}

}  // namespace

int StepTable::micro_batches() const {
  int count = 0;
  for (const Action& action : actions) {
    count += action.kind == ActionKind::kForward && action.chunk == 0;
  }
  return count;
}

int StepTable::chunks() const {
  int count = 1;
  for (const Action& action : actions) {
    count = std::max(count, action.chunk + 1);
  }
  return count;
}

std::vector<int> StepTable::bucket_counts() const {
  std::vector<int> counts(chunks());
  for (const Action& action : actions) {
    if (!IsOfBucket(action.kind)) continue;
    counts[action.chunk] = std::max(counts[action.chunk], action.index + 1);
  }
  return counts;
}

int StepTable::buckets() const {
  const std::vector<int> counts = bucket_counts();
  return std::accumulate(counts.begin(), counts.end(), 0);
}

int StepTable::rounds() const {
  int count = 1;
  for (const Action& action : actions) {
    if (!RuleOf(action.kind).Has(kHasRounds)) continue;
    count = std::max(count, action.round + 1);
  }
  return count;
}

int StepTable::Find(ActionKind kind, int index, int chunk, int round) const {
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    const Action& action = actions[i];
    if (action.kind == kind && action.index == index && action.chunk == chunk &&
        action.round == round) {
      return i;
    }
  }
  return -1;
}

StepTable DataParallelTable(int micro_batches) {
  StepTable table;
  for (int m = 0; m < micro_batches; ++m) {
    Append(table, ActionKind::kForward, m, 0);
    Append(table, ActionKind::kBackward, m, 0);
  }
  return WithNeeds(std::move(table), {});
}

StepTable GPipeTable(int micro_batches, int chunks) {
  StepTable table;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (int m = 0; m < micro_batches; ++m) {
      Append(table, ActionKind::kForward, m, chunk);
    }
  }
  for (int chunk = chunks - 1; chunk >= 0; --chunk) {
    for (int m = 0; m < micro_batches; ++m) {
      Append(table, ActionKind::kBackward, m, chunk);
    }
  }
  return WithNeeds(std::move(table), {});
}

StepTable AddTransfers(const StepTable& compute,
                       absl::Span<const ChunkEnds> chunks) {
  StepTable table;
  for (const Action& action : compute.actions) {
    const int m = action.index, chunk = action.chunk;
    TROUPE_CHECK(chunk >= 0 && chunk < static_cast<int>(chunks.size()),
                 "the ends of every chunk are known");
    const bool forward = action.kind == ActionKind::kForward;
    const bool backward = BeginsBackward(action.kind);
    const bool before = !chunks[chunk].first_stage;
    const bool after = !chunks[chunk].last_stage;
    if (forward && before) {
      Append(table, ActionKind::kRecvActivation, m, chunk);
    }
    if (backward && after) Append(table, ActionKind::kRecvGradient, m, chunk);
    Append(table, action.kind, m, chunk, action.round);
    if (forward && after) Append(table, ActionKind::kSendActivation, m, chunk);
    if (backward && before) Append(table, ActionKind::kSendGradient, m, chunk);
  }
  return WithNeeds(std::move(table), {});
}

StepTable AddTransfers(const StepTable& compute, bool first_stage,
                       bool last_stage) {
  return AddTransfers(compute, {ChunkEnds{first_stage, last_stage}});
}

namespace {

// Returns the first of a chunk's buckets that other stages share.
int FirstTied(absl::Span<const int> buckets, const ReductionOptions& options,
              int chunk) {
  const bool listed = chunk < static_cast<int>(options.tied.size());
  return buckets[chunk] - (listed ? options.tied[chunk] : 0);
}

// Adds the reductions, updates and gathers of buckets to a table.
class BucketActions {
 public:
  // Both outlive this.
  BucketActions(const ReductionOptions& options, StepTable& table)
      : options_(options),
        table_(table),
        order_(options.update_needs_all_buckets ? GatherOrder::kAtEnd
                                                : options.gather_order) {}

  // Adds the rounds [first_round, end_round) of a bucket's reduction, and what
  // follows them.
  void Append(int k, int chunk, int first_round, int end_round) {
    if (options_.fuse_updates) {
      return pipeline::Append(table_, ActionKind::kReduceUpdateBucket, k,
                              chunk);
    }
    for (int round = first_round; round < end_round; ++round) {
      pipeline::Append(table_, ActionKind::kReduceBucket, k, chunk, round);
    }
    if (options_.sum_parameters) return AppendWithNorms(k, chunk);
    pipeline::Append(table_, ActionKind::kUpdateBucket, k, chunk);
    if (!options_.gather_values) return;
    if (order_ == GatherOrder::kBehindNext) MoveToTable(gathers_);
    gathers_.push_back({ActionKind::kGatherBucket, k, {}, chunk});
    if (order_ == GatherOrder::kBehindUpdate) MoveToTable(gathers_);
  }
  // Adds what is left, behind all buckets.
  void End() {
    MoveToTable(updates_);
    std::reverse(gathers_.begin(), gathers_.end());
    MoveToTable(gathers_);
  }

 private:
  // Adds the sums over parameters, the update and the gather of a bucket. The
  // sums wait for all that the update waits for, so that a reduction behind
  // them in the table does, too.
  void AppendWithNorms(int k, int chunk) {
    if (order_ == GatherOrder::kBehindNext) MoveToTable(updates_);
    updates_.push_back({ActionKind::kReduceNorms, k, {}, chunk});
    updates_.push_back({ActionKind::kUpdateBucket, k, {}, chunk});
    if (options_.gather_values) {
      std::vector<Action>& place =
          order_ == GatherOrder::kAtEnd ? gathers_ : updates_;
      place.push_back({ActionKind::kGatherBucket, k, {}, chunk});
    }
    if (order_ == GatherOrder::kBehindUpdate) MoveToTable(updates_);
  }

  void MoveToTable(std::vector<Action>& actions) {
    table_.actions.insert(table_.actions.end(), actions.begin(), actions.end());
    actions.clear();
  }

  const ReductionOptions& options_;
  StepTable& table_;
  const GatherOrder order_;
  // Actions that are not in the table yet.
  std::vector<Action> updates_, gathers_;
};

// The reductions of a group run in table order, so those that wait for another
// stage come after those that do not.
void AppendReductions(absl::Span<const int> buckets,
                      const ReductionOptions& options, int micro_batches,
                      StepTable& table) {
  const auto first_tied = [&](int chunk) {
    return FirstTied(buckets, options, chunk);
  };
  // Earlier micro-batches have their reductions behind their backwards.
  const int first_round = options.each_micro_batch ? micro_batches - 1 : 0;
  const int end_round = first_round + options.rounds;
  const int last = static_cast<int>(buckets.size()) - 1;
  const auto append_tied = [&] {
    for (int chunk = last; chunk >= 0; --chunk) {
      for (int k = first_tied(chunk); k < buckets[chunk]; ++k) {
        Append(table, ActionKind::kReduceTied, k, chunk);
      }
    }
  };
  BucketActions actions(options, table);
  // If each micro-batch is reduced, collectives start in table order, and a
  // bucket that stages share may be the last to be complete.
  if (!options.each_micro_batch) append_tied();
  for (int chunk = last; chunk >= 0; --chunk) {
    for (int k = 0; k < first_tied(chunk); ++k) {
      actions.Append(k, chunk, first_round, end_round);
    }
  }
  if (options.each_micro_batch) append_tied();
  for (int chunk = last; chunk >= 0; --chunk) {
    for (int k = first_tied(chunk); k < buckets[chunk]; ++k) {
      actions.Append(k, chunk, 0, options.rounds);
    }
  }
  actions.End();
}

}  // namespace

StepTable AddReductions(const StepTable& table, absl::Span<const int> buckets,
                        const ReductionOptions& options) {
  // LR comes after the last forward and its send, so no stage waits for it.
  int last_forward = -1;
  for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
    const ActionKind kind = table.actions[i].kind;
    if (IsOfForward(kind) && !IsReceive(kind)) {
      last_forward = i;
    }
  }
  StepTable reduced;
  const int micro_batches = table.micro_batches();
  for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
    const Action& action = table.actions[i];
    Append(reduced, action.kind, action.index, action.chunk);
    if (i == last_forward) Append(reduced, ActionKind::kReduceLoss, 0, 0);
    const bool reduces = options.each_micro_batch &&
                         EndsBackward(action.kind) &&
                         action.index + 1 < micro_batches;
    for (int k = 0; reduces && k < FirstTied(buckets, options, action.chunk);
         ++k) {
      Append(reduced, ActionKind::kReduceBucket, k, action.chunk,
             /*round=*/action.index);
    }
  }
  AppendReductions(buckets, options, micro_batches, reduced);
  if (options.update_needs_all_buckets && options.reduce_findings) {
    Append(reduced, ActionKind::kReduceFindings, 0, 0);
  }
  return WithNeeds(std::move(reduced), options);
}

StepTable AddReductions(const StepTable& table, int buckets,
                        const ReductionOptions& options) {
  return AddReductions(table, absl::MakeConstSpan(&buckets, 1), options);
}

StepTable WithNeeds(StepTable table, const ReductionOptions& options) {
  const TableIndex index(table);
  TablePast past;
  for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
    Action& action = table.actions[i];
    action.needs.clear();
    RuleOf(action.kind).add_needs({table, index, options, past}, action);
    past.Add(action, i);
  }
  return table;
}

}  // namespace troupe::pipeline

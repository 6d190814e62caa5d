#include "pipeline/schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "pipeline/table_index.h"

namespace troupe::pipeline {
namespace {

bool IsBackward(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardInputs;
}

bool IsOfBucket(ActionKind kind) {
  return kind == ActionKind::kReduceTied || kind == ActionKind::kReduceBucket ||
         kind == ActionKind::kUpdateBucket ||
         kind == ActionKind::kReduceUpdateBucket;
}

void Append(StepTable& table, ActionKind kind, int index, int chunk) {
  table.actions.push_back({kind, index, {}, chunk});
}

// Adds the need "action (kind, index) of the same chunk is done" where the
// table has it.
void NeedDone(const TableIndex& table, ActionKind kind, int index,
              Action& action) {
  const int found = table.Find(kind, index, action.chunk);
  if (found >= 0) action.needs.push_back({SignalKind::kDone, found});
}

void NeedComputed(const TableIndex& table, Action& action) {
  const int m = action.index;
  switch (action.kind) {
    case ActionKind::kForward:
      NeedDone(table, ActionKind::kRecvActivation, m, action);
      break;
    case ActionKind::kBackward:
      NeedDone(table, ActionKind::kForward, m, action);
      NeedDone(table, ActionKind::kRecvGradient, m, action);
      NeedDone(table, ActionKind::kBackwardWeights, m - 1, action);
      break;
    case ActionKind::kBackwardInputs:
      NeedDone(table, ActionKind::kForward, m, action);
      NeedDone(table, ActionKind::kRecvGradient, m, action);
      NeedDone(table, ActionKind::kBackward, m - 1, action);
      break;
    case ActionKind::kBackwardWeights:
      NeedDone(table, ActionKind::kBackwardInputs, m, action);
      NeedDone(table, ActionKind::kBackward, m - 1, action);
      break;
    case ActionKind::kSendActivation:
      NeedDone(table, ActionKind::kForward, m, action);
      return;
    case ActionKind::kSendGradient:
      NeedDone(table, ActionKind::kBackward, m, action);
      NeedDone(table, ActionKind::kBackwardInputs, m, action);
      return;
    default:
      return;
  }
  // Backwards and weight gradients of a chunk keep micro-batch order, whole
  // ones among split ones too.
  NeedDone(table, action.kind, m - 1, action);
}

// A bucket is summed over the replicas when its gradients are complete, and
// summed over the stages that share it.
void NeedComplete(const TableIndex& table, Action& action) {
  const int tied =
      table.Find(ActionKind::kReduceTied, action.index, action.chunk);
  if (tied >= 0) {
    action.needs.push_back({SignalKind::kDone, tied});
  } else {
    action.needs.push_back(
        {SignalKind::kBucketReady, action.index, action.chunk});
  }
}

// `findings`: the number of NR, or -1.
void NeedReduced(const ReductionOptions& options, const TableIndex& table,
                 int findings, Action& action) {
  const auto need_bucket = [&action](SignalKind kind) {
    action.needs.push_back({kind, action.index, action.chunk});
  };
  switch (action.kind) {
    case ActionKind::kReduceTied:
      need_bucket(SignalKind::kBucketReady);
      break;
    case ActionKind::kReduceBucket:
      NeedComplete(table, action);
      break;
    case ActionKind::kReduceUpdateBucket:
      NeedComplete(table, action);
      need_bucket(SignalKind::kBucketReleased);
      action.needs.push_back({SignalKind::kLossReduced, 0});
      break;
    case ActionKind::kUpdateBucket:
      need_bucket(SignalKind::kBucketReduced);
      need_bucket(SignalKind::kBucketReleased);
      action.needs.push_back({SignalKind::kLossReduced, 0});
      if (options.update_needs_all_buckets) {
        action.needs.push_back({SignalKind::kAllReduced, 0});
      }
      if (findings >= 0) action.needs.push_back({SignalKind::kDone, findings});
      break;
    default:
      break;
  }
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

bool EndsBackward(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeights;
}

int StepTable::Find(ActionKind kind, int index, int chunk) const {
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    const Action& action = actions[i];
    if (action.kind == kind && action.index == index && action.chunk == chunk) {
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
    const bool backward = IsBackward(action.kind);
    const bool before = !chunks[chunk].first_stage;
    const bool after = !chunks[chunk].last_stage;
    if (forward && before) {
      Append(table, ActionKind::kRecvActivation, m, chunk);
    }
    if (backward && after) Append(table, ActionKind::kRecvGradient, m, chunk);
    Append(table, action.kind, m, chunk);
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

void AppendBucket(const ReductionOptions& options, int k, int chunk,
                  StepTable& table) {
  if (options.fuse_updates) {
    return Append(table, ActionKind::kReduceUpdateBucket, k, chunk);
  }
  Append(table, ActionKind::kReduceBucket, k, chunk);
  Append(table, ActionKind::kUpdateBucket, k, chunk);
}

// The reductions of a group keep the order of the table, so one that waits for
// another stage stands behind those that do not.
void AppendReductions(absl::Span<const int> buckets,
                      const ReductionOptions& options, StepTable& table) {
  const auto first_tied = [&](int chunk) {
    const bool listed = chunk < static_cast<int>(options.tied.size());
    return buckets[chunk] - (listed ? options.tied[chunk] : 0);
  };
  const int last = static_cast<int>(buckets.size()) - 1;
  for (int chunk = last; chunk >= 0; --chunk) {
    for (int k = first_tied(chunk); k < buckets[chunk]; ++k) {
      Append(table, ActionKind::kReduceTied, k, chunk);
    }
  }
  for (int chunk = last; chunk >= 0; --chunk) {
    for (int k = 0; k < first_tied(chunk); ++k) {
      AppendBucket(options, k, chunk, table);
    }
  }
  for (int chunk = last; chunk >= 0; --chunk) {
    for (int k = first_tied(chunk); k < buckets[chunk]; ++k) {
      AppendBucket(options, k, chunk, table);
    }
  }
}

}  // namespace

StepTable AddReductions(const StepTable& table, absl::Span<const int> buckets,
                        const ReductionOptions& options) {
  // After the last forward and its send: nobody waits for the loss first.
  int last_forward = -1;
  for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
    const ActionKind kind = table.actions[i].kind;
    if (kind == ActionKind::kForward || kind == ActionKind::kSendActivation) {
      last_forward = i;
    }
  }
  StepTable reduced;
  for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
    const Action& action = table.actions[i];
    Append(reduced, action.kind, action.index, action.chunk);
    if (i == last_forward) Append(reduced, ActionKind::kReduceLoss, 0, 0);
  }
  AppendReductions(buckets, options, reduced);
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
  const int findings = index.Find(ActionKind::kReduceFindings, 0);
  for (Action& action : table.actions) {
    action.needs.clear();
    NeedComputed(index, action);
    NeedReduced(options, index, findings, action);
  }
  if (findings >= 0) {
    // Without buckets nothing says that all are reduced.
    std::vector<Signal>& needs = table.actions[findings].needs;
    needs.push_back({SignalKind::kLossReduced, 0});
    if (table.buckets() > 0) needs.push_back({SignalKind::kAllReduced, 0});
  }
  // Only the first LR, so that a bad table stays linear too.
  const int loss = index.Find(ActionKind::kReduceLoss, 0);
  if (loss < 0) return table;
  for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
    if (table.actions[i].kind != ActionKind::kForward) continue;
    table.actions[loss].needs.push_back({SignalKind::kDone, i});
  }
  return table;
}

}  // namespace troupe::pipeline

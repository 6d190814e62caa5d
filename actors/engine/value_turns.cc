#include "actors/engine/value_turns.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/table_index.h"

namespace troupe::actors {

using pipeline::ActionKind;

ValueTurns::ValueTurns(const pipeline::StepTable& table,
                       const pipeline::Plan& plan, int rank) {
  for (const int stage : plan.StagesOf(rank)) AddChunk(plan.stages[stage]);
  AddTurns(table);
}

void ValueTurns::AddChunk(const pipeline::StagePlan& stage) {
  OfChunk& chunk = chunks_.emplace_back();
  for (const std::vector<int>& bucket : stage.buckets) {
    OfBucket& made = chunk.buckets.emplace_back();
    made.parts = {stage.FirstPart(bucket[0]), stage.LastPart(bucket[0])};
    for (const int i : bucket) {
      const Parts parts = {stage.FirstPart(i), stage.LastPart(i)};
      made.parts.first = std::min(made.parts.first, parts.first);
      made.parts.last = std::max(made.parts.last, parts.last);
      chunk.parameters.emplace(stage.parameters[i], parts);
    }
  }
}

void ValueTurns::AddTurns(const pipeline::StepTable& table) {
  const pipeline::TableIndex index(table);
  const int actions = static_cast<int>(table.actions.size());
  std::vector<int> readers(chunks_.size(), -1);
  int computing = -1;
  for (int i = 0; i < actions; ++i) {
    const pipeline::Action& action = table.actions[i];
    if (pipeline::IsCompute(action.kind)) {
      if (computing >= 0) ends_[computing] = i;
      computing = i;
    }
    if (pipeline::ReadsValues(action.kind)) readers[action.chunk] = i;
    if (action.kind != ActionKind::kReleaseValues) continue;
    const Turn turn = {index.Find(ActionKind::kGatherValues, action.index,
                                  action.chunk, action.round),
                       i, readers[action.chunk]};
    chunks_[action.chunk].buckets[action.index].turns.push_back(turn);
    releases_[turn.reader].push_back({action.index, turn});
  }
  if (computing >= 0) ends_[computing] = actions;
}

absl::StatusOr<ValueTurns::Wait> ValueTurns::WaitFor(
    const StepInFlight& step, int chunk, const nn::Parameter& parameter,
    int bucket) const {
  const OfChunk& of_chunk = chunks_[chunk];
  const std::vector<Turn>& turns = of_chunk.buckets[bucket].turns;
  const int reader = step.computing;
  const auto turn =
      std::find_if(turns.begin(), turns.end(),
                   [&](const Turn& t) { return !step.IsDone(t.release); });
  if (turn == turns.end() || turn->gather > ends_.at(reader)) {
    using Options = pipeline::PlanOptions;
    return base::FieldError<&Options::zero_stage>(absl::StrCat(
        "parameter ", parameter.name,
        " is used after modules behind it, which the shape-only forward did "
        "not do, and its values are released already; use it there too, or "
        "set ",
        base::FieldName<&Options::zero_stage>(), " to 2"));
  }
  Wait wait;
  wait.gather = turn->gather;
  const auto found = of_chunk.parameters.find(parameter.name);
  const auto releases = releases_.find(reader);
  if (found == of_chunk.parameters.end() || releases == releases_.end()) {
    return wait;
  }
  const Parts& at = found->second;
  // Where a parameter is used in several parts, this may be any of them.
  if (at.first != at.last) return wait;
  const bool forward = pipeline::IsOfForward(step.ActionAt(reader).kind);
  for (const Release& release : releases->second) {
    const Parts& parts = of_chunk.buckets[release.bucket].parts;
    const bool done = forward ? parts.last < at.first : parts.first > at.first;
    if (done && !step.IsDone(release.turn.release)) {
      wait.passed.push_back(release.turn);
    }
  }
  return wait;
}

}  // namespace troupe::actors

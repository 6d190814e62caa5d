#include "actors/sim/executed_order.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pipeline/mesh.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/compute_order.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {
namespace {

using pipeline::Action;
using pipeline::Signal;
using pipeline::SignalKind;

// Returns whether the ranks at a coordinate compute in the order of their
// table.
bool KeepsOrder(const pipeline::Plan& plan, int pp) {
  if (plan.dispatch == pipeline::Dispatch::kStrict) return true;
  if (plan.gathers_values()) return true;
  const std::vector<int> stages = pipeline::StagesAt(plan.placement(), pp);
  return std::any_of(stages.begin(), stages.end(), [&](int stage) {
    return !plan.stages[stage].layer_axes.empty();
  });
}

std::string NameOf(const Signal& need, const pipeline::StepTable& table) {
  switch (need.kind) {
    case SignalKind::kDone:
      return table.actions[need.id].ToString(table.chunks());
    case SignalKind::kBucketReady:
      return absl::StrCat("bucket ", need.id, " ready");
    case SignalKind::kBucketReleased:
      return absl::StrCat("bucket ", need.id, " released");
    case SignalKind::kBucketReduced:
      return absl::StrCat("bucket ", need.id, " reduced");
    case SignalKind::kAllReduced:
      return "all buckets reduced";
    case SignalKind::kLossReduced:
      return "the loss";
    case SignalKind::kStepAsked:
      return "the call of Step()";
  }
  return "";
}

}  // namespace

ExecutedOrder::ExecutedOrder(const pipeline::Plan& plan) : plan_(plan) {
  for (int pp = 0; pp < plan.mesh.pp(); ++pp) {
    Table table;
    table.table = plan.ranks[pp].train;
    if (KeepsOrder(plan, pp)) pipeline::KeepComputeOrder(table.table);
    const int chunks = table.table.chunks();
    for (std::size_t id = 0; id < table.table.actions.size(); ++id) {
      table.places[table.table.actions[id].ToString(chunks)] =
          static_cast<int>(id);
    }
    tables_.push_back(std::move(table));
  }
}

absl::Status ExecutedOrder::See(const TraceEvent& event) {
  const Table& table = tables_[plan_.mesh.CoordsOf(event.rank).pp];
  Progress& progress = progress_[{event.rank, event.step}];
  progress.begun.resize(table.table.actions.size());
  progress.done.resize(table.table.actions.size());
  switch (event.kind) {
    case TraceKind::kBucketReady:
      ++progress.ready[{event.chunk, event.bucket}];
      return absl::OkStatus();
    case TraceKind::kAction:
    case TraceKind::kCollective:
    case TraceKind::kUpdate:
    case TraceKind::kTransfer:
      break;
    default:
      return absl::OkStatus();
  }
  const auto place = table.places.find(event.name);
  if (place == table.places.end()) return absl::OkStatus();
  if (event.phase == TracePhase::kEnd) {
    progress.done[place->second] = true;
    return absl::OkStatus();
  }
  progress.begun[place->second] = true;
  const std::string missing =
      Missing(table, table.table.actions[place->second], progress);
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "invariant broken: rank ", event.rank, ", step ", event.step + 1, ", ",
      event.name, ": begins before what it needs, ", missing));
}

std::string ExecutedOrder::Missing(const Table& table, const Action& action,
                                   const Progress& progress) const {
  for (const Signal& need : action.needs) {
    // A bucket may be released in the course of its last reader.
    if (action.kind == pipeline::ActionKind::kReleaseValues &&
        pipeline::IsCompute(table.table.actions[need.id].kind) &&
        progress.begun[need.id]) {
      continue;
    }
    if (!IsThere(table, need, progress)) return NameOf(need, table.table);
  }
  return "";
}

bool ExecutedOrder::IsThere(const Table& table, const Signal& need,
                            const Progress& progress) const {
  // Returns whether all actions for which `is_one` returns true have ended.
  const auto all_done = [&](const auto& is_one) {
    const std::vector<Action>& actions = table.table.actions;
    for (std::size_t id = 0; id < actions.size(); ++id) {
      if (is_one(actions[id]) && !progress.done[id]) return false;
    }
    return true;
  };
  switch (need.kind) {
    case SignalKind::kDone:
      return progress.done[need.id];
    case SignalKind::kBucketReady: {
      const auto ready = progress.ready.find({need.chunk, need.id});
      return ready != progress.ready.end() && ready->second > need.round;
    }
    case SignalKind::kBucketReleased:
    case SignalKind::kStepAsked:  // no event shows it
      return true;
    case SignalKind::kAllReduced:
      return all_done(
          [](const Action& a) { return pipeline::ReducesBucket(a.kind); });
    // All rounds of a reduction have ended.
    case SignalKind::kBucketReduced:
    case SignalKind::kLossReduced:
      return all_done(
          [&](const Action& a) { return pipeline::SignalOf(a) == need; });
  }
  return true;
}

}  // namespace troupe::actors

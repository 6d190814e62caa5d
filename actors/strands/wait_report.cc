#include "actors/strands/wait_report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "pipeline/plan_groups.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/ties.h"

namespace troupe::actors {
namespace {

using pipeline::GroupId;

// Returns the collectives of a group in a step, in the order in which they
// start.
std::vector<std::string> PartsOf(const RankContext& context, GroupId group) {
  if (pipeline::IsTied(group)) {
    const std::vector<pipeline::Tie> ties =
        pipeline::TiesOf(context.plan->stages);
    return {absl::StrCat("gradients of ", ties[pipeline::TieOf(group)].name)};
  }
  const pipeline::StepTable& table = context.train_table;
  const int chunks = table.chunks();
  std::vector<std::string> parts;
  for (const pipeline::Action& action : table.actions) {
    if (!pipeline::IsCollective(action.kind) ||
        pipeline::GroupIn(*context.plan, action) != group) {
      continue;
    }
    parts.push_back(pipeline::PartOf(action, chunks));
  }
  return parts;
}

std::int64_t Nanos(WaitReport::TimePoint since, WaitReport::TimePoint now) {
  return std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::nanoseconds>(now - since)
             .count());
}

std::string DoingAt(const StepPosition::Place& place) {
  switch (place.kind) {
    case StepKind::kTrain:
      return absl::StrCat("computing step ", place.step + 1);
    case StepKind::kShareBuffers:
      return absl::StrCat("sharing buffers after step ", place.step);
    case StepKind::kGatherStates:
      return absl::StrCat("gathering a checkpoint's tensors after step ",
                          place.step);
    case StepKind::kEvaluate:
    case StepKind::kPredict:
      break;
  }
  return absl::StrCat("computing batch ", place.step, " of an evaluation");
}

}  // namespace

WaitReport::WaitReport(const RankContext& context) : context_(context) {
  for (const RankGroup& group : context.groups.of_table()) {
    seats_.push_back({&group, PartsOf(context, group.plan.id)});
  }
  for (const RankGroup& group : context.groups.of_layers()) {
    seats_.push_back({&group, {}});
  }
}

void WaitReport::AddWaits(const Seat& seat, const StepPosition::Place& place,
                          TimePoint now, RankWaits& report) const {
  const pipeline::PlanGroup& group = seat.group->plan;
  for (const comm::Waiting& waiting : seat.group->comm->Waits()) {
    RankWait wait;
    wait.what = std::string(absl::StripSuffix(waiting.what, " of the group"));
    wait.what.resize(std::min(wait.what.size(), kWaitTextMax));
    wait.group = group.name;
    wait.collective = waiting.collective;
    wait.nanos = Nanos(waiting.since, now);
    if (place.running && place.kind == StepKind::kTrain) wait.step = place.step;
    const auto of_step = static_cast<std::int64_t>(seat.parts.size());
    if (waiting.collective >= 0 && of_step > 0) {
      wait.step = context_.span->first_step + waiting.collective / of_step;
      wait.part = seat.parts[waiting.collective % of_step];
    }
    wait.begun = waiting.ranks.empty();
    if (wait.begun) {
      wait.ranks.assign(group.ranks.begin(), group.ranks.end());
    } else {
      for (int rank : waiting.ranks) wait.ranks.push_back(group.ranks[rank]);
    }
    wait.ranks.resize(std::min(wait.ranks.size(), kAwaitedRanksMax));
    report.waits.push_back(std::move(wait));
  }
}

void WaitReport::AddReceive(const StepPosition::Place& place, TimePoint now,
                            RankWaits& report) const {
  const StepPosition::Receive& receive = *place.receive;
  const pipeline::Plan& plan = *context_.plan;
  const int from = receive.stage + (receive.forward ? -1 : 1);
  RankWait wait;
  wait.what = absl::StrCat(receive.forward ? "the activation"
                           : place.kind == StepKind::kEvaluate ? "the credit"
                                                               : "the gradient",
                           " of stage ", from, " for stage ", receive.stage);
  if (place.kind == StepKind::kTrain) wait.step = place.step;
  wait.part = place.kind == StepKind::kTrain
                  ? absl::StrCat("micro-batch ", receive.micro_batch)
                  : absl::StrCat("batch ", place.step, " of an evaluation");
  // A wrong table may receive from a stage that does not exist: then the rank
  // waits for no other.
  if (from >= 0 && from < static_cast<int>(plan.stages.size())) {
    const int pp = plan.stages[from].place.pp;
    wait.ranks = {plan.mesh.Group(context_.rank, pipeline::kPpAxis)[pp]};
  }
  wait.nanos = Nanos(receive.since, now);
  report.waits.push_back(std::move(wait));
}

RankWaits WaitReport::Make(TimePoint now) const {
  RankWaits report;
  report.generation = context_.generation;
  report.rank = context_.rank;
  const StepPosition::Place place = context_.position->Get();
  for (const Seat& seat : seats_) AddWaits(seat, place, now, report);
  if (place.running && place.receive) AddReceive(place, now, report);
  std::stable_sort(
      report.waits.begin(), report.waits.end(),
      [](const RankWait& a, const RankWait& b) { return a.nanos > b.nanos; });
  report.waits.resize(std::min(report.waits.size(), kRankWaitsMax));
  if (place.running && report.waits.empty()) {
    report.busy = true;
    report.doing = DoingAt(place);
  }
  return report;
}

}  // namespace troupe::actors

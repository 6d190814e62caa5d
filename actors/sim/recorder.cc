#include "actors/sim/recorder.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/sim/executed_order.h"
#include "base/check.h"
#include "pipeline/group_id.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/activation_bound.h"
#include "pipeline/table/schedule.h"
#include "pipeline/ties.h"

namespace troupe::actors {
namespace {

absl::Status Broken(const TraceEvent& event, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat("invariant broken: rank ", event.rank, ", step ",
                   event.step + 1, ", ", event.name, ": ", what));
}

// Counts of one bucket's events on one rank in one step. Rounds of its
// reduction are launched and reduced one by one.
struct BucketLife {
  int gradients = 0;
  int ready = 0, launched = 0, reduced = 0, updated = 0, gathered = 0;
  int tied = 0, summed = 0;  // sums over stages: begun, ended
};

class Checker {
 public:
  explicit Checker(const pipeline::Plan& plan)
      : plan_(plan),
        ties_(pipeline::TiesOf(plan.stages)),
        rounds_(plan.rounds()) {}

  absl::Status See(const TraceEvent& event) {
    const bool begin = event.phase == TracePhase::kBegin;
    BucketLife& life =
        lives_[{event.rank, event.step, event.chunk, event.bucket}];
    switch (event.kind) {
      case TraceKind::kAction:
        return SeeAction(event);
      case TraceKind::kGradientComplete:
        return SeeGradient(event, life);
      case TraceKind::kBucketReady:
        ++life.ready;
        return Check(event, life.gradients == life.ready * ParametersIn(event),
                     "ready before all its gradients are complete");
      case TraceKind::kCollective:
        if (begin) launches_[event.rank].push_back(Launch(event));
        if (pipeline::GroupOf(ActionOf(event)) == pipeline::GroupId::kTied) {
          return SeeTied(event, life);
        }
        if (event.action == pipeline::ActionKind::kGatherBucket && begin) {
          ++life.gathered;
          return Check(event, life.updated == 1,
                       "gathered before its update was there");
        }
        return pipeline::ReducesBucket(event.action) ? SeeReduction(event, life)
                                                     : absl::OkStatus();
      case TraceKind::kUpdate:
        if (!begin || !Updates(event)) return absl::OkStatus();
        ++life.updated;
        return Check(event, life.reduced == RoundsOf(event),
                     "updated before its reduction was there");
      case TraceKind::kGraph:
        if (!begin) return absl::OkStatus();
        launches_[event.rank].push_back(Launch(event));
        graphs_.insert({event.rank, event.step});
        return absl::OkStatus();
      default:
        return absl::OkStatus();
    }
  }

  // Checks that every bucket of each rank and step was seen exactly once.
  // Steps that ran as a graph are left out: their actions leave no events.
  absl::Status CheckComplete(std::int64_t first_step, std::int64_t steps) {
    for (int rank = 0; rank < plan_.mesh.size(); ++rank) {
      for (const auto& [chunk, k] : BucketsOf(rank)) {
        for (std::int64_t step = first_step; step < steps; ++step) {
          if (graphs_.count({rank, step}) > 0) continue;
          const BucketLife& life = lives_[{rank, step, chunk, k}];
          TraceEvent event;
          event.rank = rank;
          event.step = step;
          event.name = absl::StrCat("chunk ", chunk, " bucket ", k);
          event.chunk = chunk;
          event.bucket = k;
          TROUPE_RETURN_IF_ERROR(
              Check(event, life.tied == IsTied(event),
                    "not summed exactly once over its stages"));
          TROUPE_RETURN_IF_ERROR(
              Check(event, life.launched == RoundsOf(event),
                    "not launched exactly once in each round"));
          TROUPE_RETURN_IF_ERROR(
              Check(event, life.updated == 1, "not updated exactly once"));
          TROUPE_RETURN_IF_ERROR(
              Check(event, life.gathered == (GathersUpdates() ? 1 : 0),
                    "not gathered exactly once"));
        }
      }
    }
    return CheckOrder();
  }

 private:
  static absl::Status Check(const TraceEvent& event, bool holds,
                            absl::string_view what) {
    return holds ? absl::OkStatus() : Broken(event, what);
  }

  // Returns the collective that the event is about.
  static pipeline::Action ActionOf(const TraceEvent& event) {
    return {event.action, std::max(event.bucket, 0), {}, event.chunk};
  }

  static std::string Launch(const TraceEvent& event) {
    return absl::StrCat(event.step, ":", event.name);
  }

  // Returns whether a gather follows each update.
  bool GathersUpdates() const {
    return plan_.owners() > 1 && !plan_.gathers_values();
  }
  // Returns whether the action updates the bucket.
  static bool Updates(const TraceEvent& event) {
    return pipeline::RuleOf(event.action).Has(pipeline::kMakesParameters);
  }

  // Returns the rank's buckets, as chunk and number.
  std::vector<std::pair<int, int>> BucketsOf(int rank) const {
    std::vector<std::pair<int, int>> buckets;
    const std::vector<int> stages = plan_.StagesOf(rank);
    for (std::size_t c = 0; c < stages.size(); ++c) {
      for (std::size_t k = 0; k < plan_.stages[stages[c]].buckets.size(); ++k) {
        buckets.emplace_back(static_cast<int>(c), static_cast<int>(k));
      }
    }
    return buckets;
  }

  const pipeline::StagePlan& StageOf(const TraceEvent& event) const {
    return plan_.stages[plan_.StagesOf(event.rank)[event.chunk]];
  }

  // Returns whether the bucket is tied to those of other stages.
  bool IsTied(const TraceEvent& event) const {
    const pipeline::TieMember own = {plan_.StagesOf(event.rank)[event.chunk],
                                     event.bucket};
    for (const pipeline::Tie& tie : ties_) {
      if (std::count(tie.members.begin(), tie.members.end(), own) > 0) {
        return true;
      }
    }
    return false;
  }

  absl::Status SeeTied(const TraceEvent& event, BucketLife& life) {
    if (event.phase != TracePhase::kBegin) {
      ++life.summed;
      return absl::OkStatus();
    }
    ++life.tied;
    return Check(event, life.ready == 1,
                 "summed over its stages before it was ready");
  }

  absl::Status SeeReduction(const TraceEvent& event, BucketLife& life) {
    if (event.phase != TracePhase::kBegin) {
      ++life.reduced;
      life.updated += Updates(event);
      return absl::OkStatus();
    }
    const int round = life.launched++;
    TROUPE_RETURN_IF_ERROR(Check(event, round < RoundsOf(event),
                                 "not launched exactly once in each round"));
    TROUPE_RETURN_IF_ERROR(
        Check(event, life.summed == IsTied(event),
              "launched before it was summed over its stages"));
    // Each round is of a micro-batch of its own, or all are of one.
    const int ready = plan_.ReducesEachMicroBatch() ? round : 0;
    TROUPE_RETURN_IF_ERROR(
        Check(event, life.ready > ready, "launched before it was ready"));
    TROUPE_RETURN_IF_ERROR(
        Check(event, life.reduced == round,
              "launched before the round before it had ended"));
    // "AR0" is the first round, "AR0.1" the next.
    const std::size_t dot = event.name.find('.');
    const std::string named =
        dot == std::string::npos ? "0" : event.name.substr(dot + 1);
    return Check(event, named == absl::StrCat(round),
                 "launched out of the order of its rounds");
  }

  // Returns the number of rounds in which the bucket is reduced.
  int RoundsOf(const TraceEvent& event) const {
    return plan_.ReducesEachMicroBatch() && IsTied(event) ? 1 : rounds_;
  }

  int ParametersIn(const TraceEvent& event) const {
    return static_cast<int>(StageOf(event).buckets[event.bucket].size());
  }

  absl::Status SeeAction(const TraceEvent& event) {
    const bool is_forward = pipeline::IsOfForward(event.action);
    if (is_forward && event.phase == TracePhase::kBegin) {
      return Check(event, ++under_way_[{event.rank, event.step}] <= Most(event),
                   "keeps more activations than its table");
    }
    if (pipeline::EndsBackward(event.action) &&
        event.phase == TracePhase::kEnd) {
      --under_way_[{event.rank, event.step}];
    }
    return absl::OkStatus();
  }

  int Most(const TraceEvent& event) const {
    return pipeline::MostActivations(plan_.RankPlanOf(event.rank).train);
  }

  absl::Status SeeGradient(const TraceEvent& event, BucketLife& life) {
    ++life.gradients;
    TROUPE_RETURN_IF_ERROR(
        Check(event,
              ++seen_[{event.rank, event.step, event.chunk, event.name}] ==
                  life.ready + 1,
              "its gradient is complete twice"));
    const pipeline::StagePlan& stage = StageOf(event);
    for (int p : stage.buckets[event.bucket]) {
      if (stage.parameters[p] == event.name) return absl::OkStatus();
    }
    return Broken(event, "its gradient is in another bucket than planned");
  }

  absl::Status CheckOrder() {
    for (int rank = 0; rank < plan_.mesh.size(); ++rank) {
      const int first = plan_.mesh.DpGroup(rank).front();
      if (launches_[rank] == launches_[first]) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("invariant broken: rank ", rank, " launched [",
                       absl::StrJoin(launches_[rank], " "), "], rank ", first,
                       " [", absl::StrJoin(launches_[first], " "), "]"));
    }
    return absl::OkStatus();
  }

  const pipeline::Plan& plan_;
  const std::vector<pipeline::Tie> ties_;
  const int rounds_;  // number of rounds of each reduction
  std::map<std::tuple<int, std::int64_t, int, int>, BucketLife> lives_;
  std::map<std::tuple<int, std::int64_t, int, std::string>, int> seen_;
  // Number of micro-batches between forward and backward, by rank and step.
  std::map<std::pair<int, std::int64_t>, int> under_way_;
  std::map<int, std::vector<std::string>> launches_;
  std::set<std::pair<int, std::int64_t>> graphs_;  // rank, step
};

}  // namespace

absl::Status CheckInvariants(const Recorder& recorder,
                             const pipeline::Plan& plan,
                             std::int64_t first_step, std::int64_t steps) {
  if (plan.stages.empty()) {
    return absl::FailedPreconditionError("the job was not even planned");
  }
  Checker checker(plan);
  for (const TraceEvent& event : recorder.events()) {
    TROUPE_RETURN_IF_ERROR(checker.See(event));
  }
  TROUPE_RETURN_IF_ERROR(checker.CheckComplete(first_step, steps));
  ExecutedOrder order(plan);
  for (const TraceEvent& event : recorder.events()) {
    TROUPE_RETURN_IF_ERROR(order.See(event));
  }
  return absl::OkStatus();
}

}  // namespace troupe::actors

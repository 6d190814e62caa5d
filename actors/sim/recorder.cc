#include "actors/sim/recorder.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

absl::Status Broken(const TraceEvent& event, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat("invariant broken: rank ", event.rank, ", step ",
                   event.step + 1, ", ", event.name, ": ", what));
}

// What one rank has done with one bucket in one step.
struct BucketLife {
  int gradients = 0;
  int ready = 0, launched = 0, reduced = 0, updated = 0;
};

class Checker {
 public:
  explicit Checker(const pipeline::Plan& plan) : plan_(plan) {}

  absl::Status See(const TraceEvent& event) {
    const bool begin = event.phase == TracePhase::kBegin;
    BucketLife& life =
        lives_[{event.rank, event.step, event.chunk, event.bucket}];
    switch (event.kind) {
      case TraceKind::kGradientComplete:
        return SeeGradient(event, life);
      case TraceKind::kBucketReady:
        ++life.ready;
        return Check(event, life.gradients == ParametersIn(event),
                     "ready before all its gradients are complete");
      case TraceKind::kCollective:
        if (begin) launches_[event.rank].push_back(Launch(event));
        if (event.bucket < 0) return absl::OkStatus();
        if (!begin) {
          ++life.reduced;
          life.updated += Updates(event);
          return absl::OkStatus();
        }
        ++life.launched;
        return Check(event, life.ready == 1, "launched before it was ready");
      case TraceKind::kUpdate:
        if (!begin) return absl::OkStatus();
        ++life.updated;
        return Check(event, life.reduced == 1,
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

  // Every rank, step and bucket of the run, seen exactly once; what a graph
  // does, nobody sees.
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
          TROUPE_RETURN_IF_ERROR(
              Check(event, life.launched == 1, "not launched exactly once"));
          TROUPE_RETURN_IF_ERROR(
              Check(event, life.updated == 1, "not updated exactly once"));
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

  static std::string Launch(const TraceEvent& event) {
    return absl::StrCat(event.step, ":", event.name);
  }

  // Whether the collective updates the bucket as it reduces it.
  static bool Updates(const TraceEvent& event) {
    return event.action == pipeline::ActionKind::kReduceUpdateBucket;
  }

  // The rank's buckets, as chunk and number.
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

  int ParametersIn(const TraceEvent& event) const {
    return static_cast<int>(StageOf(event).buckets[event.bucket].size());
  }

  absl::Status SeeGradient(const TraceEvent& event, BucketLife& life) {
    ++life.gradients;
    TROUPE_RETURN_IF_ERROR(
        Check(event, ++seen_[{event.rank, event.step, event.name}] == 1,
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
  std::map<std::tuple<int, std::int64_t, int, int>, BucketLife> lives_;
  std::map<std::tuple<int, std::int64_t, std::string>, int> seen_;
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
  return checker.CheckComplete(first_step, steps);
}

}  // namespace troupe::actors

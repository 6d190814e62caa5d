#include "pipeline/schedules/schedule_search.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/schedules/exact_schedule.h"
#include "pipeline/schedules/list_schedule.h"
#include "pipeline/schedules/producer.h"
#include "pipeline/table/join_backwards.h"

namespace troupe::pipeline {
namespace {

// Returns whether `a` is shorter, or as long with less memory.
bool IsBetter(const SimulatedStep& a, const SimulatedStep& b) {
  // Sums of times are rounded.
  const double rounding = 1e-9 * b.seconds;
  if (a.seconds < b.seconds - rounding) return true;
  return a.seconds <= b.seconds + rounding && a.memory_max() < b.memory_max();
}

// Preferences of a list schedule. Each row of kPreferences is tried.
struct Preference {
  bool splits, forwards_first, puts_weights_off;
};
constexpr Preference kPreferences[] = {
    {/*splits=*/true, /*forwards_first=*/false, /*puts_weights_off=*/true},
    {/*splits=*/true, /*forwards_first=*/true, /*puts_weights_off=*/true},
    {/*splits=*/true, /*forwards_first=*/false, /*puts_weights_off=*/false},
    {/*splits=*/true, /*forwards_first=*/true, /*puts_weights_off=*/false},
    {/*splits=*/false, /*forwards_first=*/false, /*puts_weights_off=*/false},
    {/*splits=*/false, /*forwards_first=*/true, /*puts_weights_off=*/false},
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Limit on the pairs of halves for which joining is tried.
constexpr int kJoinsMax = 256;

class Search {
 public:
  explicit Search(const ScheduleSearchOptions& options) : options_(options) {}

  absl::StatusOr<FoundSchedule> Run() {
    for (const int chunks : options_.chunks) {
      TROUPE_RETURN_IF_ERROR(
          CheckProducer(options_.pp, options_.micro_batches, chunks));
      costs_ = options_.costs_of(options_.pp * chunks);
      whole_is_shorter_ = WholeIsShorter();
      TROUPE_RETURN_IF_ERROR(AddNamed(chunks));
      TROUPE_RETURN_IF_ERROR(AddPlayed(LoopedPlacement(options_.pp, chunks)));
      if (chunks == 2)
        TROUPE_RETURN_IF_ERROR(AddPlayed(VPlacement(options_.pp)));
    }
    TROUPE_RETURN_IF_ERROR(JoinSingly());
    if (best_) return *std::move(best_);
    return absl::ResourceExhaustedError(
        absl::StrCat("schedule: no order of ", options_.micro_batches,
                     " micro-batches keeps the activations of a rank within ",
                     options_.memory_limit,
                     options_.total_limit < kInfinity
                         ? absl::StrCat(", and all that it holds within ",
                                        options_.total_limit)
                         : "",
                     "; raise the limit, or make micro-batches smaller"));
  }

 private:
  // Keeps the tables if they are shorter than the best so far; also tries them
  // with whole backwards, if these take less than their halves.
  absl::Status Offer(const std::string& name, const Placement& placement,
                     Tables tables) {
    if (whole_is_shorter_) {
      const std::vector<bool> all(tables.size(), true);
      TROUPE_RETURN_IF_ERROR(OfferOne(name, placement, Joined(tables, all)));
    }
    return OfferOne(name, placement, std::move(tables));
  }

  static Tables Joined(Tables tables, const std::vector<bool>& ranks) {
    for (std::size_t rank = 0; rank < tables.size(); ++rank) {
      if (!ranks[rank]) continue;
      tables[rank] = JoinBackwards(std::move(tables[rank]),
                                   [](const Action&) { return true; });
    }
    return tables;
  }

  // Joins halves of the best tables one by one, if the step gets shorter.
  absl::Status JoinSingly() {
    if (!best_) return absl::OkStatus();
    costs_ = options_.costs_of(static_cast<int>(best_->placement.size()));
    if (!WholeIsShorter()) return absl::OkStatus();
    int tries = kJoinsMax;
    for (int rank = 0; rank < options_.pp; ++rank) {
      std::vector<Action> pairs;
      JoinBackwards(best_->tables[rank], [&](const Action& inputs) {
        pairs.push_back({inputs.kind, inputs.index, {}, inputs.chunk});
        return false;
      });
      for (const Action& pair : pairs) {
        if (--tries < 0) return absl::OkStatus();
        Tables tables = best_->tables;
        tables[rank] =
            JoinBackwards(std::move(tables[rank]), [&](const Action& inputs) {
              return inputs.index == pair.index && inputs.chunk == pair.chunk;
            });
        TROUPE_RETURN_IF_ERROR(
            OfferOne(best_->name, best_->placement, std::move(tables)));
      }
    }
    return absl::OkStatus();
  }

  // Returns the memory that each rank holds besides activations.
  std::vector<double> HeldBy(const Placement& placement) const {
    std::vector<double> held(options_.pp, 0);
    for (std::size_t stage = 0; stage < placement.size(); ++stage) {
      held[placement[stage].pp] += costs_.stages[stage].held;
    }
    return held;
  }

  bool WholeIsShorter() const {
    for (const StageCosts& stage : costs_.stages) {
      if (stage.TimeOf(ActionKind::kBackward) < stage.inputs + stage.weights) {
        return true;
      }
    }
    return false;
  }

  absl::Status OfferOne(const std::string& name, const Placement& placement,
                        Tables tables) {
    TROUPE_ASSIGN_OR_RETURN(
        SimulatedStep step,
        SimulateStep(tables, placement, costs_, Dispatch::kArrival));
    const std::vector<double> held = HeldBy(placement);
    for (std::size_t rank = 0; rank < held.size(); ++rank) {
      const double activations = step.ranks[rank].memory_max;
      if (activations > options_.memory_limit ||
          activations + held[rank] > options_.total_limit) {
        return absl::OkStatus();
      }
    }
    if (best_ && !IsBetter(step, best_->step)) return absl::OkStatus();
    best_ = FoundSchedule{name, placement, std::move(tables), std::move(step),
                          /*is_shortest=*/false};
    return absl::OkStatus();
  }

  absl::Status AddNamed(int chunks) {
    for (const NamedSchedule& schedule : NamedSchedules()) {
      if (schedule.chunks != 0 && schedule.chunks != chunks) continue;
      absl::StatusOr<Tables> tables =
          schedule.tables(options_.pp, options_.micro_batches, chunks);
      if (!tables.ok()) continue;  // the schedule does not take these sizes
      TROUPE_RETURN_IF_ERROR(Offer(schedule.name,
                                   PlacementFor(schedule, options_.pp, chunks),
                                   *std::move(tables)));
    }
    return absl::OkStatus();
  }

  absl::Status AddPlayed(const Placement& placement) {
    ListScheduleOptions play;
    play.placement = placement;
    play.micro_batches = options_.micro_batches;
    play.costs = costs_;
    const std::vector<double> held = HeldBy(placement);
    play.memory_limit = std::min(
        options_.memory_limit,
        options_.total_limit - *std::max_element(held.begin(), held.end()));
    if (play.memory_limit < 0) return absl::OkStatus();
    for (const Preference& preference : kPreferences) {
      play.splits = preference.splits;
      play.forwards_first = preference.forwards_first;
      play.puts_weights_off = preference.puts_weights_off;
      absl::StatusOr<Tables> tables = ListSchedule(play);
      if (absl::IsResourceExhausted(tables.status())) return absl::OkStatus();
      TROUPE_RETURN_IF_ERROR(tables.status());
      TROUPE_RETURN_IF_ERROR(Offer("played", placement, *std::move(tables)));
    }
    return AddExact(play);
  }

  absl::Status AddExact(ListScheduleOptions play) {
    if (options_.exact_limit <= 0) return absl::OkStatus();
    play.splits = true;
    const double shorter_than = best_ ? best_->step.seconds : kInfinity;
    ExactSchedule exact =
        FindExactSchedule(play, shorter_than, options_.exact_limit);
    if (exact.tables) {
      TROUPE_RETURN_IF_ERROR(
          Offer("exact", play.placement, *std::move(exact.tables)));
    }
    const bool unlimited =
        std::min(options_.memory_limit, options_.total_limit) == kInfinity;
    if (exact.looked_at_all && unlimited && best_ && !whole_is_shorter_ &&
        best_->placement == play.placement) {
      best_->is_shortest = true;
    }
    return absl::OkStatus();
  }

  const ScheduleSearchOptions& options_;
  StepCosts costs_;
  bool whole_is_shorter_ = false;  // whole backwards than their halves
  std::optional<FoundSchedule> best_;
};

}  // namespace

absl::StatusOr<FoundSchedule> SearchSchedule(
    const ScheduleSearchOptions& options) {
  if (options.costs_of == nullptr || options.chunks.empty()) {
    return absl::InvalidArgumentError(
        "schedule: a search needs ScheduleSearchOptions.costs_of and .chunks; "
        "set both");
  }
  return Search(options).Run();
}

}  // namespace troupe::pipeline

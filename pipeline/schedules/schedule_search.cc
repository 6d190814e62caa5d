#include "pipeline/schedules/schedule_search.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/schedules/exact_schedule.h"
#include "pipeline/schedules/list_schedule.h"
#include "pipeline/schedules/producer.h"

namespace troupe::pipeline {
namespace {

// Of steps that are as long, the one that keeps less is better.
bool IsBetter(const SimulatedStep& a, const SimulatedStep& b) {
  // Sums of times round.
  const double rounding = 1e-9 * b.seconds;
  if (a.seconds < b.seconds - rounding) return true;
  return a.seconds <= b.seconds + rounding && a.memory_max() < b.memory_max();
}

class Search {
 public:
  explicit Search(const ScheduleSearchOptions& options) : options_(options) {}

  absl::StatusOr<FoundSchedule> Run() {
    for (const int chunks : options_.chunks) {
      TROUPE_RETURN_IF_ERROR(
          CheckProducer(options_.pp, options_.micro_batches, chunks));
      costs_ = options_.costs_of(options_.pp * chunks);
      TROUPE_RETURN_IF_ERROR(AddNamed(chunks));
      TROUPE_RETURN_IF_ERROR(AddPlayed(LoopedPlacement(options_.pp, chunks)));
      if (chunks == 2)
        TROUPE_RETURN_IF_ERROR(AddPlayed(VPlacement(options_.pp)));
    }
    if (best_) return *std::move(best_);
    return absl::ResourceExhaustedError(
        absl::StrCat("schedule: no order of ", options_.micro_batches,
                     " micro-batches keeps the activations of a rank within ",
                     options_.memory_limit));
  }

 private:
  // Keeps the tables where they are shorter than what there is.
  absl::Status Offer(const std::string& name, const Placement& placement,
                     Tables tables) {
    TROUPE_ASSIGN_OR_RETURN(
        SimulatedStep step,
        SimulateStep(tables, placement, costs_, Dispatch::kArrival));
    if (step.memory_max() > options_.memory_limit) return absl::OkStatus();
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
      if (!tables.ok()) continue;  // it does not take these sizes
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
    play.memory_limit = options_.memory_limit;
    for (const int rule : {0, 1, 2, 3, 4, 5}) {
      play.splits = rule < 4;
      play.forwards_first = rule % 2 == 1;
      play.puts_weights_off = rule < 2;
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
    const double shorter_than =
        best_ ? best_->step.seconds : std::numeric_limits<double>::infinity();
    ExactSchedule exact =
        FindExactSchedule(play, shorter_than, options_.exact_limit);
    if (exact.tables) {
      TROUPE_RETURN_IF_ERROR(
          Offer("exact", play.placement, *std::move(exact.tables)));
    }
    const bool unlimited =
        options_.memory_limit == std::numeric_limits<double>::infinity();
    if (exact.looked_at_all && unlimited && best_ &&
        best_->placement == play.placement) {
      best_->is_shortest = true;
    }
    return absl::OkStatus();
  }

  const ScheduleSearchOptions& options_;
  StepCosts costs_;
  std::optional<FoundSchedule> best_;
};

}  // namespace

absl::StatusOr<FoundSchedule> SearchSchedule(
    const ScheduleSearchOptions& options) {
  if (options.costs_of == nullptr || options.chunks.empty()) {
    return absl::InvalidArgumentError(
        "schedule: a search needs costs and numbers of chunks");
  }
  return Search(options).Run();
}

}  // namespace troupe::pipeline

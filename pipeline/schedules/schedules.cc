#include "pipeline/schedules/schedules.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "pipeline/schedules/producer.h"

namespace troupe::pipeline {
namespace {

template <absl::StatusOr<Tables> (*kProducer)(int, int)>
absl::StatusOr<Tables> WithoutChunks(int pp, int micro_batches, int) {
  return kProducer(pp, micro_batches);
}

}  // namespace

int VHalfBound(int pp) { return pp + 3; }
int VMinBound(int pp) { return (2 * pp + 8) / 3; }

const std::vector<NamedSchedule>& NamedSchedules() {
  static const auto* const schedules = new std::vector<NamedSchedule>{
      {"gpipe", 1, false, WithoutChunks<GPipe>},
      {"1f1b", 1, false, WithoutChunks<OneForwardOneBackward>},
      {"interleaved_1f1b", 0, false, InterleavedOneForwardOneBackward},
      {"breadth_first", 0, false, BreadthFirst},
      {"zb_h1", 1, false, WithoutChunks<ZeroBubbleH1>},
      {"zb_h2", 1, false, WithoutChunks<ZeroBubbleH2>},
      {"zb_v", 2, true, WithoutChunks<ZeroBubbleV>},
      {"dualpipe_v", 2, true, WithoutChunks<DualPipeV>},
      {"v_half", 2, true, WithoutChunks<VHalf>},
      {"v_min", 2, true, WithoutChunks<VMin>},
  };
  return *schedules;
}

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const NamedSchedule& schedule : NamedSchedules()) {
    names.push_back(schedule.name);
  }
  return names;
}

Placement PlacementFor(const NamedSchedule& schedule, int pp, int chunks) {
  return schedule.in_a_v ? VPlacement(pp) : LoopedPlacement(pp, chunks);
}

absl::Status SetSchedule(absl::string_view name, PlanOptions& options) {
  for (const NamedSchedule& schedule : NamedSchedules()) {
    if (schedule.name != name) continue;
    const int pp = options.mesh.pp();
    const int chunks =
        schedule.chunks == 0 ? options.virtual_stages : schedule.chunks;
    TROUPE_ASSIGN_OR_RETURN(
        Tables tables, schedule.tables(pp, options.MicroBatches(), chunks));
    options.placement = PlacementFor(schedule, pp, chunks);
    return SetTables(std::move(tables), options);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("schedule: there is no \"", name, "\"; choose one of ",
                   absl::StrJoin(ScheduleNames(), ", ")));
}

absl::Status SetTables(Tables tables, PlanOptions& options) {
  if (static_cast<int>(tables.size()) != options.mesh.pp()) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: there are ", tables.size(),
                     " tables where the mesh has pp = ", options.mesh.pp()));
  }
  const auto kept = std::make_shared<const Tables>(std::move(tables));
  options.schedule = [kept](const Mesh&, int pp, int) {
    return (*kept)[static_cast<std::size_t>(pp)];
  };
  return absl::OkStatus();
}

}  // namespace troupe::pipeline

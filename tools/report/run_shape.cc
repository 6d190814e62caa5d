#include "tools/report/run_shape.h"

#include "absl/algorithm/container.h"
#include "pipeline/group_id.h"
#include "pipeline/mesh.h"
#include "pipeline/plan_groups.h"
#include "pipeline/table/action_rules.h"

namespace troupe::tools {

std::optional<bool> PassesForward(pipeline::ActionKind kind) {
  const bool forward = pipeline::IsOfForward(kind);
  const bool passes = pipeline::IsReceive(kind) || pipeline::IsSend(kind) ||
                      forward || pipeline::BeginsBackward(kind);
  return passes ? std::make_optional(forward) : std::nullopt;
}

std::optional<RunShape::Source> RunShape::InputOf(const Bar& bar) const {
  if (bar.track != BarTrack::kCompute || bar.is_graph) return std::nullopt;
  const std::optional<bool> forward = PassesForward(bar.kind);
  if (!forward.has_value() || pipeline::IsSend(bar.kind)) return std::nullopt;
  const int from = StageOf(bar) + (*forward ? -1 : 1);
  if (from < 0 || from >= stages()) return std::nullopt;
  Source source;
  source.rank =
      plan_.mesh.RankWith(bar.rank, pipeline::kPpAxis, placement_[from].pp);
  source.chunk = placement_[from].chunk;
  source.forward = *forward;
  return source;
}

std::vector<Bar> RunShape::PartsOf(const Bar& collective) const {
  std::vector<Bar> parts;
  const pipeline::GroupId group = pipeline::GroupIn(
      plan_, {collective.kind, collective.index, {}, collective.chunk});
  if (!pipeline::IsTied(group)) {
    for (const int rank : plan_.mesh.Group(collective.rank, group)) {
      parts.push_back(collective);
      parts.back().rank = rank;
    }
    return parts;
  }
  const pipeline::TieMember own = {StageOf(collective), collective.index};
  for (const pipeline::Tie& tie : ties_) {
    if (!absl::c_linear_search(tie.members, own)) continue;
    for (const pipeline::TieMember& member : tie.members) {
      const pipeline::StagePlace& place = placement_[member.stage];
      parts.push_back(collective);
      parts.back().rank =
          plan_.mesh.RankWith(collective.rank, pipeline::kPpAxis, place.pp);
      parts.back().chunk = place.chunk;
      parts.back().index = member.bucket;
    }
    return parts;
  }
  return {collective};
}

}  // namespace troupe::tools

#include "tools/report/run_shape.h"

#include "pipeline/action_rules.h"

namespace troupe::tools {

using pipeline::ActionKind;

std::optional<RunShape::Source> RunShape::InputOf(const Bar& bar) const {
  if (bar.track != BarTrack::kCompute || bar.is_graph) return std::nullopt;
  const bool forward = bar.kind == ActionKind::kForward ||
                       bar.kind == ActionKind::kRecvActivation;
  if (!forward && bar.kind != ActionKind::kBackward &&
      bar.kind != ActionKind::kBackwardInputs &&
      bar.kind != ActionKind::kRecvGradient) {
    return std::nullopt;
  }
  const int from = StageOf(bar) + (forward ? -1 : 1);
  if (from < 0 || from >= stages()) return std::nullopt;
  Source source;
  source.rank =
      plan_.mesh.RankWith(bar.rank, pipeline::kPpAxis, placement_[from].pp);
  source.chunk = placement_[from].chunk;
  source.forward = forward;
  return source;
}

std::vector<int> RunShape::MembersOf(const Bar& collective) const {
  return plan_.mesh.Group(collective.rank, pipeline::GroupOf(collective.kind));
}

}  // namespace troupe::tools

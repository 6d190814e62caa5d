// Who waits for whom in a step of a plan: where a bar's input comes from, and
// which ranks take part in a collective.
//
//   const RunShape shape(plan);
//   shape.StageOf(bar);                 // 3
//   if (auto source = shape.InputOf(bar)) Find(*source);
//   for (int rank : shape.MembersOf(bar)) Tell(rank);
//
// A value; threads may share a constant one. The plan outlives it.

#ifndef TOOLS_REPORT_RUN_SHAPE_H_
#define TOOLS_REPORT_RUN_SHAPE_H_

#include <optional>
#include <vector>

#include "pipeline/plan.h"
#include "tools/report/trace_reader.h"

namespace troupe::tools {

class RunShape {
 public:
  explicit RunShape(const pipeline::Plan& plan)
      : plan_(plan), placement_(plan.placement()) {}

  int ranks() const { return plan_.mesh.size(); }
  int stages() const { return static_cast<int>(placement_.size()); }
  // Chunks that the rank holds.
  int ChunksOf(int rank) const {
    return static_cast<int>(plan_.StagesOf(rank).size());
  }
  // Of a bar whose rank and chunk the plan has.
  int StageOf(const Bar& bar) const {
    return plan_.StagesOf(bar.rank)[bar.chunk];
  }
  // Whether the rank's collectives run on its compute strand.
  bool ReducesInline(int rank) const {
    return plan_.RankPlanOf(rank).reduce_inline;
  }

  // Rank and chunk whose action of the same micro-batch makes the input of a
  // forward or of a backward that begins, or what a receive takes; none: it
  // needs no other stage.
  struct Source {
    int rank = 0;
    int chunk = 0;
    bool forward = true;  // a forward makes it, or a backward
  };
  std::optional<Source> InputOf(const Bar& bar) const;

  // The ranks that a collective waits for, its own included.
  std::vector<int> MembersOf(const Bar& collective) const;

 private:
  const pipeline::Plan& plan_;
  const pipeline::Placement placement_;
};

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_RUN_SHAPE_H_

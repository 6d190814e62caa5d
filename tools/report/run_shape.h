// Dependencies between ranks in a step of a plan: which action computes a bar's
// input, and which ranks take part in a collective.
//
//   const RunShape shape(plan);
//   shape.StageOf(bar);                 // 3
//   if (auto source = shape.InputOf(bar)) Find(*source);
//   for (const Bar& part : shape.PartsOf(bar)) Wait(part.rank);
//
// Threads may share a constant RunShape. The plan must outlive it.

#ifndef TOOLS_REPORT_RUN_SHAPE_H_
#define TOOLS_REPORT_RUN_SHAPE_H_

#include <optional>
#include <vector>

#include "pipeline/plan.h"
#include "pipeline/ties.h"
#include "tools/report/trace_reader.h"

namespace troupe::tools {

// Returns whether the action computes or carries activations that pass from
// stage to stage (true), or gradients that do (false); none for other actions.
std::optional<bool> PassesForward(pipeline::ActionKind kind);

class RunShape {
 public:
  explicit RunShape(const pipeline::Plan& plan)
      : plan_(plan),
        placement_(plan.placement()),
        ties_(pipeline::TiesOf(plan.stages)) {}

  int ranks() const { return plan_.mesh.size(); }
  int stages() const { return static_cast<int>(placement_.size()); }
  // Returns the number of chunks that the rank holds.
  int ChunksOf(int rank) const {
    return static_cast<int>(plan_.StagesOf(rank).size());
  }
  // Returns the stage of a bar. The plan must have the bar's rank and chunk.
  int StageOf(const Bar& bar) const {
    return plan_.StagesOf(bar.rank)[bar.chunk];
  }
  // Returns whether the rank's collectives run on its compute strand.
  bool ReducesInline(int rank) const {
    return plan_.RankPlanOf(rank).reduce_inline;
  }

  // The action of the same micro-batch that computes a bar's input.
  struct Source {
    int rank = 0;
    int chunk = 0;
    bool forward = true;  // whether a forward computes it, not a backward
  };
  // Returns the source of a forward, a whole backward, a backward of inputs or
  // a receive; none for other bars, and if the input needs no other stage.
  std::optional<Source> InputOf(const Bar& bar) const;

  // Returns the bars of all ranks of a collective, with the times of
  // `collective`. Ranks that sum a tied bucket hold it under numbers of their
  // own (pipeline/ties.h).
  std::vector<Bar> PartsOf(const Bar& collective) const;

 private:
  const pipeline::Plan& plan_;
  const pipeline::Placement placement_;
  const std::vector<pipeline::Tie> ties_;
};

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_RUN_SHAPE_H_

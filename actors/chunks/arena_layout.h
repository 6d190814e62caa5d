// Divides the parameters of a stage into arenas, one for each dtype, with the
// buckets of the plan, and checks that the module is the one that was planned.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       const ArenaLayout layout,
//       LayOutArenas(plan.stages[1], /*number=*/1, counted_elsewhere,
//                    module->Parameters()));
//   const ArenaLayout::Place place = layout.places[k];   // the plan's bucket k
//   layout.arenas[place.arena].buckets[place.k];          // its parameters
//
// Threads: any number; a layout is constant.

#ifndef ACTORS_CHUNKS_ARENA_LAYOUT_H_
#define ACTORS_CHUNKS_ARENA_LAYOUT_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/autograd/parameter.h"
#include "pipeline/plan.h"

namespace troupe::actors {

struct ArenaLayout {
  // The parameters of one dtype.
  struct Arena {
    std::vector<std::vector<nn::Parameter*>> buckets;
    // Buckets that another rank or an earlier stage counts in norms.
    std::vector<int> copied;
    std::vector<nn::Parameter*> frozen;
  };
  // Place of a bucket of the plan: bucket k of an arena.
  struct Place {
    int arena = 0;
    int k = 0;
  };

  // Arenas in the order of the dtypes' first buckets; one without parameters if
  // the stage has none, so that users need no special case.
  std::vector<Arena> arenas;
  std::vector<Place> places;  // indexed by bucket of the plan
};

// Returns the layout of the stage with this number. `counted_elsewhere`: names
// of the parameters that an earlier stage has too (pipeline::CopiesIn), or
// another rank along tp: buckets have them alone, or none.
//   kInvalidArgument: the parameters are not those of the plan; names one.
absl::StatusOr<ArenaLayout> LayOutArenas(
    const pipeline::StagePlan& stage, int number,
    const std::set<std::string>& counted_elsewhere,
    const std::vector<nn::Parameter*>& parameters);

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_ARENA_LAYOUT_H_

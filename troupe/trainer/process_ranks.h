// The ranks of a Trainer that are in this process, as options and launcher say
// before a job has begun.
//
//   const ProcessRanks ranks = RanksOfProcess(options);
//   if (ranks.global_rank == 0) PrintLine("begins");
//
// Ranks are spread over processes, and replicas of a prediction are, in order
// and as evenly as possible: the first processes may have one more
// (actors/launchers/cluster_from_environment.h).

#ifndef TROUPE_TRAINER_PROCESS_RANKS_H_
#define TROUPE_TRAINER_PROCESS_RANKS_H_

#include <unistd.h>

#include "troupe/trainer_options.h"

namespace troupe {

// A process's share of things that are divided in order.
struct ProcessShare {
  int first = 0;
  int count = 0;
};

// Returns the share of one of `processes` in `count` things.
ProcessShare ShareOf(int process, int processes, int count);

// Numbers of the first rank of a process, and of all ranks.
struct ProcessRanks {
  int global_rank = 0;
  int local_rank = 0;  // on its node
  int node_rank = 0;
  int world_size = 1;
};

// Never fails: a process is the only one if no launcher has started it, and if
// the launcher's variables are such that Trainer::Fit() refuses them.
ProcessRanks RanksOfProcess(const PlacementOptions& options,
                            const char* const* environment = environ);

}  // namespace troupe

#endif  // TROUPE_TRAINER_PROCESS_RANKS_H_

// Runs a rank's collectives. In a group of one rank, and in a group that the
// rank does not have, a collective in place (an all-reduce) is done at once;
// *inline* collectives run to their end on this strand; all others are
// *launched* and end later.
//
//   Reducer reducer({&groups, /*run_inline=*/false}, &launcher, &wait);
//   TROUPE_ASSIGN_OR_RETURN(
//       bool done, reducer.Start(action, GroupId::kDp, collective, ready));
//   // Not done: the launcher's owner calls reducer.Finish(), later.
//
// Both ways make the same additions in the same order. Inline is faster if a
// handover to another thread costs more than the collective
// (RankPlan::reduce_inline).
//
// Errors: those of Communicator::RunInline().
// Threads: one at a time.

#ifndef ACTORS_ENGINE_REDUCER_H_
#define ACTORS_ENGINE_REDUCER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/engine/fiber/strand_wait.h"
#include "actors/engine/rank_groups.h"
#include "comm/communicator.h"
#include "pipeline/group_id.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

class Reducer {
 public:
  // Starts the collectives that are not inline.
  class Launcher {
   public:
    virtual ~Launcher() = default;
    // Starts `collective` of action `action` of the table. Its range may be
    // read once `after` has completed.
    virtual void Launch(int action, pipeline::GroupId group,
                        const comm::Collective& collective,
                        const comm::Event& after) = 0;
  };

  struct Options {
    const RankGroups* groups = nullptr;
    bool run_inline = false;
  };

  // All pointers outlive the reducer. Inline collectives run through `wait`.
  Reducer(const Options& options, Launcher* launcher, StrandWait* wait)
      : options_(options), launcher_(launcher), wait_(wait) {}

  // Returns true if the result is complete already. `after` must have completed
  // if reductions are inline.
  absl::StatusOr<bool> Start(int action, pipeline::GroupId group,
                             const comm::Collective& collective,
                             const comm::Event& after);
  // Records a reduction that was launched without Start(), by a hook of a loop
  // (loop/hook_action.h).
  void NoteLaunched() { ++in_flight_; }
  // Records the end of a launched collective.
  void Finish() { --in_flight_; }
  // Returns the number of collectives that were launched and have not ended.
  int in_flight() const { return in_flight_; }

 private:
  const Options options_;
  Launcher* const launcher_;
  StrandWait* const wait_;
  int in_flight_ = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_REDUCER_H_

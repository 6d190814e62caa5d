// Runs a rank's collectives: where its group has one rank there is nothing to
// do; *inline* ones run to their end on this very strand; the others are
// *launched*, and heard of later.
//
//   Reducer reducer({&groups, /*run_inline=*/false}, &launcher, &wait);
//   TROUPE_ASSIGN_OR_RETURN(
//       bool done, reducer.Start(action, GroupId::kDp, collective, ready));
//   // Not done: the launcher's owner calls reducer.Finish(), later.
//
// Both ways make the same additions in the same order. Inline pays where
// handing over would cost more than the work (RankPlan::reduce_inline).
//
// Errors: those of Communicator::RunInline().
// Threads: one at a time.

#ifndef ACTORS_ENGINE_REDUCER_H_
#define ACTORS_ENGINE_REDUCER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/engine/rank_groups.h"
#include "actors/engine/strand_wait.h"
#include "comm/communicator.h"
#include "pipeline/group_id.h"
#include "pipeline/schedule.h"

namespace troupe::actors {

class Reducer {
 public:
  // Who starts a collective that is not inline.
  class Launcher {
   public:
    virtual ~Launcher() = default;
    // `action` is the number by which its end will be known. Its range is
    // ready `after` that event.
    virtual void Launch(int action, pipeline::GroupId group,
                        const comm::Collective& collective,
                        const comm::Event& after) = 0;
  };

  struct Options {
    const RankGroups* groups = nullptr;
    bool run_inline = false;
  };

  // The groups outlive the reducer. `wait`: how an inline collective waits for
  // its peers.
  Reducer(const Options& options, Launcher* launcher, StrandWait* wait)
      : options_(options), launcher_(launcher), wait_(wait) {}

  // True where the result is there already. `after`: done, where reductions
  // are inline.
  absl::StatusOr<bool> Start(int action, pipeline::GroupId group,
                             const comm::Collective& collective,
                             const comm::Event& after);
  // One that was launched is done.
  void Finish() { --in_flight_; }
  // Launched and not finished.
  int in_flight() const { return in_flight_; }

 private:
  const Options options_;
  Launcher* const launcher_;
  StrandWait* const wait_;
  int in_flight_ = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_REDUCER_H_

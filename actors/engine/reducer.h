// Runs a rank's collectives: where its group has one rank there is nothing to
// do; *inline* ones run to their end on this very strand; the others are
// *launched*, and heard of later.
//
//   Reducer reducer({world, dp, /*run_inline=*/false}, &launcher, &wait);
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

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/engine/strand_wait.h"
#include "comm/communicator.h"
#include "pipeline/group_id.h"
#include "pipeline/schedule.h"

namespace troupe::actors {

// What a collective of a step is about: "loss", "norms of gradients", "bucket
// 1", "tied bucket 1"; "bucket 1 of chunk 0" where the table has several.
std::string PartOf(const pipeline::Action& collective, int chunks);

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
    comm::Communicator* world = nullptr;
    comm::Communicator* dp = nullptr;
    bool run_inline = false;
    // By the number of the tie (pipeline/ties.h).
    absl::Span<const std::unique_ptr<comm::Communicator>> tied = {};
  };

  // `wait`: how an inline collective waits for its peers.
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
  comm::Communicator& GroupOf(pipeline::GroupId group) const;

  const Options options_;
  Launcher* const launcher_;
  StrandWait* const wait_;
  int in_flight_ = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_REDUCER_H_

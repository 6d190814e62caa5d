// The communication strand of one rank: starts collectives in the order in
// which the compute strand launches them, and drives them.
//
// Takes  Launch {action, group, collective}
//        drive  (to itself, and from the groups' wake-ups)
// Gives  Launched to the compute strand, when the collective has ended or
//        failed; with Launch::answer_at_once, when it has started
// Fails  never by itself: a collective's error is in its Launched
//
// One drive message runs a bounded number of chunks, since further collectives
// may wait to be started; in the simulator one chunk, so that ranks interleave.

#ifndef ACTORS_STRANDS_COMM_STRAND_H_
#define ACTORS_STRANDS_COMM_STRAND_H_

#include "actors/protocol/drive_calls.h"
#include "actors/protocol/messages.h"
#include "actors/setup/rank_context.h"

namespace troupe::actors {

struct CommState {
  static inline const char* name = "comm";
  RankContextPtr context;
  ComputeActor compute;
  bool woken = false;  // whether the groups wake this strand
  DriveCalls calls;

  ~CommState();
};

// Returns the answer to `launch`: its collective has started or ended, or has
// failed with `status`.
Launched AnswerTo(const Launch& launch, const absl::Status& status);

CommActor::behavior_type CommBehavior(
    CommActor::stateful_pointer<CommState> self, RankContextPtr context,
    SupervisorActor supervisor, ComputeActor compute);

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_COMM_STRAND_H_

// A collective of a hand-written loop that is no action of its table, along dp:
// beside the reductions of the buckets, and one at a time.
//
//   SideCollective sum(/*action=*/-1, "marks of used parameters");
//   TROUPE_RETURN_IF_ERROR(sum.Start(collective, ready, step, reducer));
//   while (sum.in_flight()) wait.AwaitNews();
//   // Meanwhile, when the collective of action -1 has ended:
//   sum.End(reducer);
//
// Errors: those of Reducer::Start(), with step and part.
// Threads: one at a time.

#ifndef ACTORS_ENGINE_LOOP_SIDE_COLLECTIVE_H_
#define ACTORS_ENGINE_LOOP_SIDE_COLLECTIVE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "actors/engine/reducer.h"
#include "comm/communicator.h"
#include "pipeline/group_id.h"

namespace troupe::actors {

class SideCollective {
 public:
  // `action`: its number at EngineHost::Launch(), which is below 0. `part`: its
  // name in errors, a constant.
  SideCollective(int action, const char* part) : action_(action), part_(part) {}

  int action() const { return action_; }
  const char* part() const { return part_; }
  // Whether it has begun and not ended.
  bool in_flight() const { return in_flight_; }

  absl::Status Start(const comm::Collective& collective,
                     const comm::Event& ready, std::int64_t step,
                     Reducer& reducer) {
    in_flight_ = true;
    const absl::StatusOr<bool> done =
        reducer.Start(action_, pipeline::GroupId::kDp, collective, ready);
    if (!done.ok()) return Failed(step, done.status());
    if (*done) in_flight_ = false;
    return absl::OkStatus();
  }
  void End(Reducer& reducer) {
    reducer.Finish();
    in_flight_ = false;
  }
  // Returns the error of one that failed with `why`.
  absl::Status Failed(std::int64_t step, const absl::Status& why) const {
    return absl::Status(why.code(), absl::StrCat("step ", step + 1, ", ", part_,
                                                 ": ", why.message()));
  }

 private:
  const int action_;
  const char* const part_;
  bool in_flight_ = false;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_LOOP_SIDE_COLLECTIVE_H_

// What goes wrong between the nodes of a simulated cluster, and when: plain
// data that prints and parses, so that a run that failed can be had again.
//
//   FaultPlan plan;
//   plan.delay_max = absl::Milliseconds(5);
//   plan.faults.push_back({FaultKind::kDie, /*node=*/2});
//   plan.faults.back().at = 17;
//   plan.ToString();                   // "delay 5ms; die 2 at 17"
//   absl::StatusOr<FaultPlan> same = ParseFaultPlan("delay 5ms; die 2 at 17");
//
// A plan's faults, by example:
//     cut 0-1 at 17 for 3s    nothing gets through; all of it arrives later
//     reset 0-1 at 17         what is under way is lost, both ends hear so
//     pause 2 at 17 for 12s   nothing of the node runs, its timers are late;
//                             what comes for it waits
//     die 2 at 17             as a machine without power: nobody hears of it
//     die 2 at 17 heard       as a killed process: its peers hear of it
//     stale 2 at 17           messages of an earlier attempt of the job arrive
// "at 17": when 17 messages have been sent between nodes.

#ifndef ACTORS_SIM_FAULT_PLAN_H_
#define ACTORS_SIM_FAULT_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace troupe::actors {

enum class FaultKind { kCut, kReset, kPause, kDie, kStale };

struct Fault {
  FaultKind kind = FaultKind::kDie;
  int node = 0;
  int peer = -1;  // of a link: its other end
  std::int64_t at = 0;
  absl::Duration lasts;  // of a cut and a pause
  bool heard = false;    // of a death
};

struct FaultPlan {
  // A message is under way for a time below this, which a seed draws.
  absl::Duration delay_max = absl::ZeroDuration();
  std::vector<Fault> faults;

  std::string ToString() const;
};

// kInvalidArgument: quotes what it does not understand.
absl::StatusOr<FaultPlan> ParseFaultPlan(absl::string_view text);

}  // namespace troupe::actors

#endif  // ACTORS_SIM_FAULT_PLAN_H_

// A list of faults of a simulated cluster, and their times: plain data that
// prints and parses, so that a run that failed can be repeated.
//
//   FaultPlan plan;
//   plan.delay_max = absl::Milliseconds(5);
//   plan.faults.push_back({FaultKind::kDie, /*node=*/2});
//   plan.faults.back().at = 17;
//   plan.ToString();                   // "delay 5ms; die 2 at 17"
//   absl::StatusOr<FaultPlan> same = ParseFaultPlan("delay 5ms; die 2 at 17");
//
// A plan's faults, by example:
//     cut 0-1 at 17 for 3s    no message gets through; all arrive later
//     reset 0-1 at 17         messages under way are lost, both ends see that
//                             the connection has closed
//     pause 2 at 17 for 12s   no actor of the node runs, its timers are late,
//                             its messages wait
//     die 2 at 17             as a machine without power: peers see nothing
//     die 2 at 17 heard       as a killed process: its connections close
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
  int peer = -1;         // kCut and kReset: the other end of the link
  std::int64_t at = 0;   // number of messages sent before
  absl::Duration lasts;  // kCut and kPause: duration
  bool heard = false;    // kDie: whether the node's connections close
};

struct FaultPlan {
  // Limit on the time that a message is under way; the seed draws the time.
  absl::Duration delay_max = absl::ZeroDuration();
  std::vector<Fault> faults;

  std::string ToString() const;
};

// Parses the text of FaultPlan::ToString().
//   kInvalidArgument: quotes the part that is no fault.
absl::StatusOr<FaultPlan> ParseFaultPlan(absl::string_view text);

}  // namespace troupe::actors

#endif  // ACTORS_SIM_FAULT_PLAN_H_

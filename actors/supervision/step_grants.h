// The progress of a job's ranks, and how far they may run: the steps that each
// has committed, the steps that are granted, and the next boundary, at which
// all ranks stop. Plain data, without actors.
//
//   StepGrants grants(/*ranks=*/2, /*first_step=*/0);
//   grants.SetBoundary(100);                   // the next evaluation, say
//   if (const auto until = grants.Next()) SendGrants(*until);
//   grants.Commit(/*rank=*/0, /*steps=*/1, seconds);
//   grants.Commit(/*rank=*/1, /*steps=*/1, seconds);
//   grants.Committed();                        // 1
//   if (grants.AtBoundary()) Evaluate();
//
// A grant reaches up to two windows (step_window.h) ahead of the slowest rank,
// so that no rank idles, and never beyond the boundary. After Halt() nothing
// more is granted, and the last granted step is the boundary.
//
// Times are in seconds since any fixed point. For one thread.

#ifndef ACTORS_SUPERVISION_STEP_GRANTS_H_
#define ACTORS_SUPERVISION_STEP_GRANTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "actors/supervision/step_window.h"

namespace troupe::actors {

class StepGrants {
 public:
  // `window_max`: limit on a window, for tests; 0: none.
  StepGrants(int ranks, std::int64_t first_step, std::int64_t window_max = 0)
      : done_(ranks, first_step),
        granted_(first_step),
        boundary_(first_step),
        window_(first_step, window_max) {}

  int ranks() const { return static_cast<int>(done_.size()); }
  // Checks that `rank`, which reports `what` ("progress"), is one of the job's.
  //   kInternal: it is not: its process runs another build.
  absl::Status CheckRank(int rank, absl::string_view what) const;
  // Returns the number of steps that the slowest rank has committed.
  std::int64_t Committed() const;
  // Whether every rank has committed all granted steps.
  bool AllDone() const { return Committed() == granted_; }
  // Whether every rank has reached the boundary.
  bool AtBoundary() const {
    return Committed() == (halted_ ? granted_ : boundary_);
  }

  // Sets the step at which all ranks stop next.
  void SetBoundary(std::int64_t step) { boundary_ = step; }
  // Makes the last granted step the boundary: no rank runs beyond it, so all
  // ranks can stop there.
  void StopAtGranted() { boundary_ = granted_; }
  // Ends the granting: a stop was requested.
  void Halt() { halted_ = true; }
  bool halted() const { return halted_; }

  // Returns the number of steps to grant now; none if the present grant
  // suffices. It counts as granted from then on.
  std::optional<std::int64_t> Next();
  // Notes that `rank` has committed `steps` steps in all, at time `seconds`.
  void Commit(int rank, std::int64_t steps, double seconds);
  // Excludes the time until `seconds` from the pace of steps.
  void Restart(double seconds) { window_.Restart(seconds); }

  // Returns "rank 0 has done 40, rank 1 has done 39 of 64 granted steps".
  std::string ToString() const;

 private:
  std::vector<std::int64_t> done_;  // number of committed steps of each rank
  std::int64_t granted_;
  std::int64_t boundary_;
  StepWindow window_;
  bool halted_ = false;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_STEP_GRANTS_H_

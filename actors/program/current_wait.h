// The wait that the program of a rank is in, for a group or for its device, and
// the time since it began: its strand ends a wait that takes too long.
//
//   CurrentWait wait;
//   wait.BeginFor(group, now);
//   AwaitNews();
//   wait.EndForGroup();
//   wait.BeginForDevice(now);
//   if (wait.active() && wait.Elapsed(now) > timeout) Abort(wait.group());
//   wait.EndForDevice();
//
// A wait for the device may begin within one for a group, which then counts as
// the wait. For one thread.

#ifndef ACTORS_PROGRAM_CURRENT_WAIT_H_
#define ACTORS_PROGRAM_CURRENT_WAIT_H_

#include <chrono>

#include "absl/time/time.h"
#include "comm/communicator.h"

namespace troupe::actors {

class CurrentWait {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  void BeginFor(comm::Communicator& group, TimePoint now) {
    group_ = &group;
    since_ = now;
  }
  void EndForGroup() { group_ = nullptr; }
  void BeginForDevice(TimePoint now) {
    for_device_ = true;
    since_ = now;
  }
  void EndForDevice() { for_device_ = false; }

  bool active() const { return group_ != nullptr || for_device_; }
  // Returns the group that is waited for; null: none, or the device is.
  comm::Communicator* group() const { return group_; }
  // Returns the time since the last wait began.
  absl::Duration Elapsed(TimePoint now) const {
    return absl::FromChrono(now - since_);
  }

 private:
  comm::Communicator* group_ = nullptr;
  bool for_device_ = false;
  TimePoint since_;
};

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_CURRENT_WAIT_H_

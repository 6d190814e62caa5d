// The calls by which the ranks of one process start one collective: their
// arguments, and how far each has come.
//
//   LocalCalls calls(/*places=*/2);
//   calls.Join(place, collective, event);   // Start() or RunInline()
//   calls.Arm(place);                       // its `after` is ready
//   if (calls.all_armed()) Announce(calls.first());
//
// Index: place (layout.h). Not thread-safe: used under the group's lock. The
// arguments of a rank are constant once all ranks have armed.

#ifndef COMM_SPANNING_OPERATION_LOCAL_CALLS_H_
#define COMM_SPANNING_OPERATION_LOCAL_CALLS_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "comm/signature.h"

namespace troupe::comm::internal {

class LocalCalls {
 public:
  struct Call {
    bool joined = false;
    bool armed = false;
    std::uint64_t signature = 0;
    Collective collective;
    Event event;
    // Time when it was started; the epoch: not known.
    std::chrono::steady_clock::time_point since;
  };

  explicit LocalCalls(int places) : calls_(places) {}

  void Join(int place, const Collective& collective, const Event& event) {
    Call& call = calls_[place];
    call.joined = true;
    call.collective = collective;
    call.signature = Pack(collective);
    call.event = event;
    has_events_ |= !event.ready();
    if (first_ < 0) first_ = place;
  }
  void Arm(int place) {
    calls_[place].armed = true;
    ++armed_;
  }
  void SetSince(int place, std::chrono::steady_clock::time_point since) {
    calls_[place].since = since;
  }
  // Forgets all calls.
  void Clear() {
    std::fill(calls_.begin(), calls_.end(), Call());
    first_ = -1;
    armed_ = 0;
    has_events_ = false;
  }

  int size() const { return static_cast<int>(calls_.size()); }
  const Call& operator[](int place) const { return calls_[place]; }
  // Returns the place of the first rank that joined; -1 if there is none.
  int first_place() const { return first_; }
  // Returns what that rank started: like the others', but for its tensors.
  const Collective& first() const { return calls_[first_].collective; }
  bool any_armed() const { return armed_ > 0; }
  bool all_armed() const { return armed_ == size(); }
  // Returns whether a rank awaits an event.
  bool has_events() const { return has_events_; }

 private:
  std::vector<Call> calls_;
  int first_ = -1;
  int armed_ = 0;
  bool has_events_ = false;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_OPERATION_LOCAL_CALLS_H_

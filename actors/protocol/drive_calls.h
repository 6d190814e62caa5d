// Lets any thread ask a strand to drive its groups. However often it is asked,
// one drive message is under way at most.
//
//   const DriveCalls calls{strand};       // a handle on the strand itself
//   group.SetWakeup(calls.call());        // called from any thread
//   const auto on_drive = [calls, &group](drive_atom) {
//     calls.Taken();                      // before the work
//     while (group.Progress()) {
//     }
//   };
//
// The calls may outlive the strand, and are in vain then.
//
// Threads: call() any; the rest the strand's own.

#ifndef ACTORS_PROTOCOL_DRIVE_CALLS_H_
#define ACTORS_PROTOCOL_DRIVE_CALLS_H_

#include <atomic>
#include <functional>
#include <memory>

#include "actors/caf/caf.h"
#include "actors/protocol/messages.h"

namespace troupe::actors {

class DriveCalls {
 public:
  DriveCalls() = default;
  // Actor: a handle that reacts to drive_atom.
  template <typename Actor>
  explicit DriveCalls(const Actor& strand)
      : call_([under_way = under_way_,
               weak = caf::actor_cast<caf::weak_actor_ptr>(strand)] {
          if (under_way->exchange(true)) return;
          if (auto strong = weak.lock()) {
            caf::anon_send(caf::actor_cast<Actor>(strong), drive_atom::value);
          }
        }) {}

  const std::function<void()>& call() const { return call_; }
  // Says that the message has come.
  void Taken() const { under_way_->store(false); }

 private:
  std::shared_ptr<std::atomic<bool>> under_way_ =
      std::make_shared<std::atomic<bool>>(false);
  std::function<void()> call_;
};

}  // namespace troupe::actors

#endif  // ACTORS_PROTOCOL_DRIVE_CALLS_H_

// A completion: a collective, work of a device, anything that will be done, or
// fail, once. Shared by copying.
//
//   Event done = Event::Make();
//   done.OnReady([](const absl::Status& status) { Show(status); });   // once
//   done.Complete(absl::OkStatus());                          // or an error
//   done.ready(); done.status();
//
// A default-constructed Event is already done and ok: "after nothing".
// An event of a device is ready when the work it stands for has run, not when
// it was enqueued: from then on the host, another device and a collective may
// touch the memory that this work wrote, and reuse the memory that it read.
// Whoever starts something that needs such memory takes the event instead of
// waiting for it (comm::Communicator::Start(.., after)).
//
// A device may know its events by something of its own, the *origin*: work of
// the same kind of device can then be told to wait for it there, and the host
// has nothing to do with it. An event without origin is completed by the host.
// The origin may come later than the event: work that is not yet given to the
// device has none. An event that is ready, or has an origin, is *known*.
//
//   done.OnKnown([] { GoOn(); });          // ready, or it has an origin now
//   mine.Follow(done);                     // is known, and ready, as `done` is
//
// Threads: any. Callbacks run in the thread that completes the event (or gives
// it its origin), or at once in the caller's where it is done already; they
// must not block.

#ifndef BASE_EVENT_H_
#define BASE_EVENT_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"

namespace troupe::base {

// Base of what a kind of device knows its events by.
class EventOrigin {
 public:
  virtual ~EventOrigin() = default;
  // Blocks until the device has done it: for those who give up, and must not
  // leave memory behind that is still written to.
  virtual void Block() const {}
};

class Event {
 public:
  using Callback = std::function<void(const absl::Status&)>;

  Event() = default;
  static Event Make();

  bool ready() const;
  // Ok until it is ready.
  absl::Status status() const;
  void OnReady(Callback callback) const;
  // The first call wins; later ones are ignored.
  void Complete(const absl::Status& status) const;

  // Null where it has none, or none yet. It stays until the last handle goes.
  std::shared_ptr<const EventOrigin> origin() const;
  // Once at most.
  void SetOrigin(std::shared_ptr<const EventOrigin> origin) const;
  void OnKnown(std::function<void()> callback) const;
  // This event takes the origin of `other`, and is completed with it.
  void Follow(const Event& other) const;

 private:
  struct State;
  explicit Event(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace troupe::base

#endif  // BASE_EVENT_H_

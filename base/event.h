// Completion of an operation (a collective, work of a device, ...), like a
// future without a value: it completes once, with a status. Copies share state.
//
//   Event done = Event::Make();
//   done.OnReady([](const absl::Status& status) { Show(status); });   // once
//   done.Complete(absl::OkStatus());                          // or an error
//   done.ready(); done.status();
//
// A default-constructed Event is ready and ok: "after nothing". An event of a
// device is ready when the work that it stands for has run, not when that was
// enqueued: from then on the host, another device and a collective may access
// the memory that this work wrote, and reuse the memory that it read. A
// function that needs this memory takes the event instead of waiting for it
// (comm::Communicator::Start(.., after)).
//
// A kind of device may attach its own handle to an event, the *origin* (such as
// a CUDA event): other work of the same kind of device can then wait for it on
// the device, without the host. The host completes an event without origin. The
// origin may be set later than the event is made: work that has not been
// enqueued on the device has none. An event that is ready, or has an origin, is
// *known*.
//
//   done.OnKnown([] { GoOn(); });          // called when it is known
//   mine.Follow(done);                     // known, and ready, when `done` is
//
// Threads: any. Callbacks run in the thread that completes the event (or sets
// its origin), or at once in the caller's if it is ready already; they must not
// block.

#ifndef BASE_EVENT_H_
#define BASE_EVENT_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"

namespace troupe::base {

// Base class of the handles that devices attach to events.
class EventOrigin {
 public:
  virtual ~EventOrigin() = default;
  // Blocks until the device has done the work. For callers that give up, and
  // must not free memory that is still written to.
  virtual void Block() const {}
};

class Event {
 public:
  using Callback = std::function<void(const absl::Status&)>;

  Event() = default;
  static Event Make();

  bool ready() const;
  // Returns ok until it is ready.
  absl::Status status() const;
  void OnReady(Callback callback) const;
  // Completes the event; only the first call has an effect.
  void Complete(const absl::Status& status) const;

  // Returns null if it has none, or none yet. The origin stays until the last
  // handle is destroyed.
  std::shared_ptr<const EventOrigin> origin() const;
  // Sets the origin; only the first call has an effect.
  void SetOrigin(std::shared_ptr<const EventOrigin> origin) const;
  void OnKnown(std::function<void()> callback) const;
  // Gives this event the origin of `other`, and completes it with `other`'s
  // status.
  void Follow(const Event& other) const;

 private:
  struct State;
  explicit Event(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace troupe::base

#endif  // BASE_EVENT_H_

// What a transport brings: frames, in order and once, between this process and
// one other. All else (collectives, send and recv) is written once over it.
//
//   struct Printer : FrameSink {
//     char* Place(int, const Frame&) override { return nullptr; }
//     void Take(int peer, const Frame& frame, const char* payload) override {
//       Print(peer, frame.type, absl::string_view(payload, frame.bytes));
//     }
//     void OnLost(int, const absl::Status& why) override { Show(why); }
//   };
//   Printer printer;
//   link.SetSink(&printer);
//   link.Send(frame, payload, /*done=*/nullptr);
//   while (link.Progress()) {
//   }
//
// Waiting: a thread that has nothing to do asks every link to Arm() an entry of
// poll(2), and sleeps there. Nothing else blocks.
//
// Failure: a link that is lost says so once, by OnLost(), from a call of
// Progress(); then nothing moves any more: every SendDone is called, what was
// asked to be sent later too. A link does not recover; make a new one.
//
// Threads: Send and Progress from any, also at once. Place, Take and OnLost run
// in a thread that calls Progress(), one at a time for each link; they may
// Send, on any link, but call no Progress(). OnSent runs in a thread that calls
// Progress, Send or Close (then perhaps before it returns), with no lock of the
// link held.

#ifndef COMM_LINK_H_
#define COMM_LINK_H_

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace troupe::comm {

// The head of what travels. Only `bytes` has a meaning for the transport.
struct Frame {
  std::uint32_t bytes = 0;  // of the payload
  std::uint16_t type = 0;
  std::uint16_t part = 0;
  std::uint32_t group = 0;
  std::uint32_t tag = 0;
  std::uint64_t seq = 0;
  std::uint64_t words[3] = {0, 0, 0};
};
static_assert(sizeof(Frame) == 48);  // on the wire as it is, little-endian

// A link refuses to take in longer payloads: whoever sends cuts them.
inline constexpr std::uint32_t kFrameBytesMax = 1 << 20;

// The type that links use among themselves; all others are free.
inline constexpr std::uint16_t kReservedType = 0xffff;

// A range of this process's memory that others of this host can map
// (shm/shared_memory.h).
struct SharedRange {
  std::uint64_t id = 0;  // of this process: never 0, and never used again
  char* data = nullptr;
  std::size_t bytes = 0;
  int fd = -1;  // of the anonymous file that it is
};

// Told when a payload is not needed any more.
class SendDone {
 public:
  virtual ~SendDone() = default;
  virtual void OnSent() = 0;
};

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // `frame` has come from process `peer`: where its payload is to be put,
  // frame.bytes of memory that stay until Take(). Null: Take() is shown the
  // payload where the transport has it. Not called where there is no payload.
  virtual char* Place(int peer, const Frame& frame) = 0;
  // All of it is there. Where Place() gave no memory, `payload` is the
  // transport's, aligned for any element, and gone when this returns.
  virtual void Take(int peer, const Frame& frame, const char* payload) = 0;
  virtual void OnLost(int peer, const absl::Status& why) = 0;
};

class Link {
 public:
  // Lets go of all payloads, by their SendDone; no callback runs any more when
  // it returns. No other thread is in a call.
  virtual ~Link() = default;

  // The number of the process at the other end.
  virtual int peer() const = 0;
  // "tcp to process 3 at 10.0.0.7:40112", for errors and tables.
  virtual std::string ToString() const = 0;

  // Before the first Progress(); outlives the link.
  virtual void SetSink(FrameSink* sink) = 0;

  // Queues a frame, in order after those before, and sends what can be sent at
  // once. `payload` stays as it is until `done` (which may be null for a frame
  // without payload, and with `copy`: then the link has made a copy before this
  // returns; for small ones).
  virtual void Send(const Frame& frame, const char* payload, SendDone* done,
                    bool copy = false) = 0;

  // Sends and takes in what is there, a bounded piece. False when there was
  // nothing to do, or another thread is at it.
  virtual bool Progress() = 0;

  // What to sleep on: fills `entry` and returns true; false: there is work for
  // Progress() now. Whoever sleeps wakes up again after `*patience` at the
  // latest, which a link may shorten (one that has no descriptor: entry->fd is
  // -1).
  virtual bool Arm(pollfd* entry, absl::Duration* patience) = 0;

  // Memory by reference, where both ends are on one host; other links have
  // none. All four: any thread, no callback.
  //
  // True: the other end has mapped `range`. The first call offers it to the
  // other end, which then takes a while; false for ever where it cannot.
  virtual bool Lend(const SharedRange& /*range*/) { return false; }
  // Nobody uses the range of that number any more: the other end forgets it.
  virtual void TakeBack(std::uint64_t /*id*/) {}
  // Bytes [offset, offset + bytes) of the range `id` that the other end lends:
  // they stay mapped as long as the pointer. Their owner may write to them at
  // any time. Null: it does not lend such bytes.
  virtual std::shared_ptr<char> Borrow(std::uint64_t /*id*/,
                                       std::uint64_t /*offset*/,
                                       std::size_t /*bytes*/) const {
    return nullptr;
  }
  // Asked after reading: false where the other end had given up the link by
  // then, and its memory may have served something else.
  virtual bool BorrowedHolds() const { return false; }

  // Ends the link with `why` (not ok), as if it had been lost, at both ends, if
  // it is not lost yet. OnLost() is called by the next Progress(). Frames that
  // wait are dropped. The other end hears of `why` if it reads before this link
  // is destroyed, else perhaps only of a connection that was closed.
  virtual void Close(const absl::Status& why) = 0;
};

}  // namespace troupe::comm

#endif  // COMM_LINK_H_

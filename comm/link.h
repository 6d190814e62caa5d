// The interface of a transport: frames, in order and once, between this process
// and one other. All else (collectives, send and recv) is written once over it.
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
// Waiting: an idle thread calls Arm() of every link to fill an entry for
// poll(2), and sleeps there. Nothing else blocks.
//
// Failure: a lost link calls OnLost() once, from a call of Progress(). Nothing
// is sent or received after that: every SendDone is called, also that of a
// later Send(). A link does not recover; make a new one.
//
// Threads: Send and Progress may be called from any thread, also concurrently.
// Place, Take and OnLost run in a thread that calls Progress(), one at a time
// for each link; they may call Send() of any link, but no Progress(). OnSent
// runs in a thread that calls Progress, Send or Close (then perhaps before it
// returns), with no lock of the link held.

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

// Header of a frame. The transport interprets only `bytes`, and `type`
// kReservedType.
struct Frame {
  std::uint32_t bytes = 0;  // size of the payload
  std::uint16_t type = 0;
  std::uint16_t part = 0;
  std::uint32_t group = 0;
  std::uint32_t tag = 0;
  std::uint64_t seq = 0;
  std::uint64_t words[3] = {0, 0, 0};
};
static_assert(sizeof(Frame) == 48);  // sent as it is, little-endian

// Limit on a frame's payload: a link refuses longer ones, senders cut them.
inline constexpr std::uint32_t kFrameBytesMax = 1 << 20;

// Size up to which payloads travel with their announcement, on most links; and
// the limit on it.
inline constexpr std::size_t kEagerBytesDefault = std::size_t{16} << 10;
inline constexpr std::size_t kEagerBytesMax = kFrameBytesMax / 4;

// Frame type that links use among themselves; users choose among all others.
inline constexpr std::uint16_t kReservedType = 0xffff;

// A range of this process's memory that others of this host can map
// (shm/shared_memory.h).
struct SharedRange {
  std::uint64_t id = 0;  // unique in this process: never 0, and never reused
  char* data = nullptr;
  std::size_t bytes = 0;
  int fd = -1;  // anonymous file that backs the range
};

// Called once a payload is no longer needed.
class SendDone {
 public:
  virtual ~SendDone() = default;
  virtual void OnSent() = 0;
};

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // Returns memory for the payload of `frame`, which has arrived from process
  // `peer`: frame.bytes bytes that stay until Take(). Null: Take() gets a
  // pointer into the transport's memory. Not called for a frame without
  // payload. If it returns memory, it may be called for the next frame before
  // Take() is called for this one.
  virtual char* Place(int peer, const Frame& frame) = 0;
  // Receives a complete frame. If Place() returned no memory, `payload` is the
  // transport's, aligned for any element, and invalid when this returns.
  virtual void Take(int peer, const Frame& frame, const char* payload) = 0;
  virtual void OnLost(int peer, const absl::Status& why) = 0;
};

class Link {
 public:
  // Releases all payloads, by their SendDone; no callback runs when it returns.
  // No other thread may be in a call.
  virtual ~Link() = default;

  // Returns the number of the process at the other end.
  virtual int peer() const = 0;
  // Returns "tcp to process 3 at 10.0.0.7:40112", for errors and tables.
  virtual std::string ToString() const = 0;

  // Sets the receiver of frames, before the first Progress(); it outlives the
  // link.
  virtual void SetSink(FrameSink* sink) = 0;

  // Returns the size of payload up to which it should travel with its
  // announcement (FabricOptions::eager_bytes). The same at both ends; at most
  // kEagerBytesMax.
  virtual std::size_t eager_bytes() const { return kEagerBytesDefault; }

  // Queues a frame behind earlier ones, and sends as much as possible at once.
  // `payload` stays unchanged until `done` is called. `done` may be null for a
  // frame without payload, and with `copy`, which makes the link copy the
  // payload before this returns; for small payloads.
  virtual void Send(const Frame& frame, const char* payload, SendDone* done,
                    bool copy = false) = 0;

  // Sends and receives a bounded amount. Returns false if there was nothing to
  // do, or another thread is doing it.
  virtual bool Progress() = 0;

  // Fills `entry` for a thread that wants to sleep, and returns true; false:
  // there is work for Progress() now. The thread sleeps at most `*patience`,
  // which a link may shorten (one that has no descriptor does: its entry->fd is
  // -1).
  virtual bool Arm(pollfd* entry, absl::Duration* patience) = 0;

  // Memory by reference, where both ends are on one host; other links do not
  // support it. All four may be called from any thread, and run no callback.
  //
  // Returns whether the other end has mapped `range`. The first call offers the
  // range to the other end, which maps it some time later; the result stays
  // false if it cannot.
  virtual bool Lend(const SharedRange& /*range*/) { return false; }
  // Withdraws a range that is no longer used: the other end unmaps it.
  virtual void TakeBack(std::uint64_t /*id*/) {}
  // Returns bytes [offset, offset + bytes) of the range `id` that the other end
  // lends: they stay mapped as long as the pointer lives. Their owner may write
  // to them at any time. Null: it does not lend these bytes.
  virtual std::shared_ptr<char> Borrow(std::uint64_t /*id*/,
                                       std::uint64_t /*offset*/,
                                       std::size_t /*bytes*/) const {
    return nullptr;
  }
  // Returns whether bytes read from borrowed memory are valid; called after
  // reading. False if the other end had given up the link by then, and may have
  // reused the memory.
  virtual bool BorrowedHolds() const { return false; }

  // Ends the link at both ends with `why` (not ok), unless it is lost already,
  // as if it had been lost. The next Progress() calls OnLost(). Frames that
  // wait are dropped. The other end receives `why` if it reads before this link
  // is destroyed; otherwise it may see a closed connection only.
  virtual void Close(const absl::Status& why) = 0;
};

}  // namespace troupe::comm

#endif  // COMM_LINK_H_

// What links between processes have in common: a queue of frames to be sent,
// one writer and one reader at a time, and how a link ends.
//
//     Send -> queue -> Write() -> ... -> Read() -> FrameSink
//
//   struct PigeonLink : QueuedLink {
//     PigeonLink() : QueuedLink(/*peer=*/1, "pigeon", "the loft") {}
//     bool Arm(pollfd* entry, absl::Duration* patience) override;
//     Written Write(absl::Span<Outgoing* const> frames) override;
//     bool Read() override;
//     void SayFarewell(const absl::Status& why, const Outgoing*) override;
//   };
//
// Threads: whoever finds a frame in the queue and no writer becomes the writer,
// and also writes what others queue meanwhile. So no frame is left behind by a
// Send() that came while another thread was writing. Locks are held for the
// queue alone, never while bytes move or a callback runs.

#ifndef COMM_QUEUED_LINK_H_
#define COMM_QUEUED_LINK_H_

#include <atomic>
#include <cstddef>
#include <deque>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "comm/link.h"

namespace troupe::comm {

class QueuedLink : public Link {
 public:
  // "`transport` to process `peer` at `address`"
  QueuedLink(int peer, absl::string_view transport, absl::string_view address);
  ~QueuedLink() override;

  int peer() const final { return peer_; }
  std::string ToString() const final { return name_; }
  void SetSink(FrameSink* sink) final { sink_ = sink; }
  void Send(const Frame& frame, const char* payload, SendDone* done,
            bool copy) final ABSL_LOCKS_EXCLUDED(mutex_);
  bool Progress() final ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(const absl::Status& why) final ABSL_LOCKS_EXCLUDED(mutex_);

 protected:
  struct Outgoing {
    Frame frame;
    const char* payload = nullptr;
    SendDone* done = nullptr;
    std::string copy;      // instead of `payload`: the link keeps it itself
    std::size_t sent = 0;  // bytes, of head and payload together

    const char* bytes() const {
      return payload != nullptr ? payload : copy.data();
    }
  };
  struct Written {
    std::size_t frames = 0;  // from the front, that are sent in full
    bool full = false;       // no more fits in now
  };

  // The transport's part. Each is called by one thread at a time; Write and
  // SayFarewell exclude each other, and Read may run beside them.

  // Sends from the front what fits in. Comes again without frames where all
  // were sent and it was full, until it is not: for what the transport keeps.
  virtual Written Write(absl::Span<Outgoing* const> frames) = 0;
  // Takes in a bounded piece, by Deliver*(), until the link is lost. True if
  // there was anything.
  virtual bool Read() = 0;
  // Tells the other end why this one ends, as far as that goes without waiting.
  // `begun`: the frame that is partly sent, or null; gone afterwards.
  virtual void SayFarewell(const absl::Status& why, const Outgoing* begun) = 0;
  // Lets go of what Place() gave for a payload that has not come whole. The
  // reader's last call, before OnLost().
  virtual void EndReading() {}
  // Goes on with that after the end. True if anything moved.
  virtual bool FlushFarewell() { return false; }

  // Calls of the sink, from Read() alone.
  char* Place(const Frame& frame) { return sink_->Place(peer_, frame); }
  void Take(const Frame& frame, const char* payload) {
    sink_->Take(peer_, frame, payload);
  }

  // Queues a frame of the transport's own, of type kReservedType.
  void SendOwn(const Frame& frame) ABSL_LOCKS_EXCLUDED(mutex_) {
    Enqueue(frame, /*payload=*/nullptr, /*done=*/nullptr, /*copy=*/false);
  }

  // The first reason counts. Any thread.
  void Lose(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // What is sent from now on goes nowhere, but Read() may still find something:
  // the reason, perhaps.
  void LoseWriting(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // Why writing failed; ok if it did not.
  absl::Status write_error() const ABSL_LOCKS_EXCLUDED(mutex_);

  enum class Work {
    kNone,
    kNow,        // something to do for Progress(), or another thread is at it
    kWaitsFull,  // frames wait until the transport takes more
  };
  // For Arm(). With kWaitsFull, `*payload_bytes` are those of the oldest frame
  // that waits.
  Work work(std::size_t* payload_bytes) const ABSL_LOCKS_EXCLUDED(mutex_);

  // "process 3 at 10.0.0.7:40112"
  const std::string& other_end() const { return other_end_; }

  // Writes what is queued, if no other thread does. True if a frame went.
  bool Flush() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Enqueue(const Frame& frame, const char* payload, SendDone* done,
               bool copy) ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes a batch, as the writer; false: the writer has stepped back.
  bool WriteBatch(bool* moved) ABSL_LOCKS_EXCLUDED(mutex_);
  // Says farewell and drops the queue, as the writer, who then steps back.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes a frame that found no queue, as the writer, who then steps back.
  void SendAtOnce(Outgoing out, bool copy) ABSL_LOCKS_EXCLUDED(mutex_);
  static void OwnPayload(Outgoing* out);
  void TellLoss() ABSL_LOCKS_EXCLUDED(mutex_);
  bool GoOnWithFarewell() ABSL_LOCKS_EXCLUDED(mutex_);
  bool ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !why_.ok() || !write_error_.ok();
  }

  const int peer_;
  const std::string other_end_;
  const std::string name_;
  FrameSink* sink_ = nullptr;

  mutable absl::Mutex mutex_;
  std::deque<Outgoing> queue_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // by one thread
  bool full_ ABSL_GUARDED_BY(mutex_) = false;     // as the last Write() said
  absl::Status why_ ABSL_GUARDED_BY(mutex_);      // not ok: lost
  absl::Status write_error_ ABSL_GUARDED_BY(mutex_);
  bool farewell_due_ ABSL_GUARDED_BY(mutex_) = false;

  std::atomic<bool> lost_{false};     // as why_ says
  std::atomic<bool> queued_{false};   // something is in queue_, or due
  std::atomic<bool> reading_{false};  // by one thread
  std::atomic<bool> told_{false};     // OnLost was called
};

}  // namespace troupe::comm

#endif  // COMM_QUEUED_LINK_H_

// Base class of links between processes: a queue of frames to send, at most one
// writer and one reader at a time, and the protocol by which a link ends.
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
// Threads: a thread that finds a frame in the queue and no writer becomes the
// writer, and also writes frames that others queue meanwhile. So no frame is
// left behind by a Send() that was called while another thread was writing. The
// lock is held for the queue alone, never while bytes move or a callback runs.

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
  // Names the link "`transport` to process `peer` at `address`".
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
    // Whether the payload stays unchanged until `done` is called, so that the
    // transport may send from its memory later.
    bool stays = true;
    std::string copy;      // replaces `payload`: the link's own copy
    std::size_t sent = 0;  // bytes sent, of header and payload together

    const char* bytes() const {
      return payload != nullptr ? payload : copy.data();
    }
  };
  struct Written {
    std::size_t frames = 0;  // number sent in full, from the front
    bool full = false;       // whether the transport takes no more now
  };

  // The functions that a transport implements. Each is called by one thread at
  // a time; Write and SayFarewell exclude each other, and Read may run
  // concurrently.

  // Sends as much as possible, from the front. If all frames were sent but the
  // transport was full, it is called again without frames until it is not full,
  // to send data that the transport still buffers.
  //
  // A transport may go on to read the payload of a frame that it counts as
  // sent, if the payload stays: it takes over `done`, sets it to null, is full
  // meanwhile, and calls it later, in the order of the frames.
  virtual Written Write(absl::Span<Outgoing* const> frames) = 0;
  // Receives a bounded amount, by Place() and Take(), until the link is lost.
  // Returns true if it received anything.
  virtual bool Read() = 0;
  // Sends the reason of the end to the other end, as far as possible without
  // waiting. `begun` is the frame that is partly sent, or null; invalid after
  // the call.
  virtual void SayFarewell(const absl::Status& why, const Outgoing* begun) = 0;
  // Releases the payloads of all frames whose `done` Write() has taken over.
  // The writer's last call, after SayFarewell(); `why` is ok if only writing
  // has failed.
  virtual void EndWriting(const absl::Status& /*why*/) {}
  // Releases the memory that Place() returned for an incomplete payload. The
  // reader's last call, before OnLost().
  virtual void EndReading() {}
  // Continues to send the farewell after the end. Returns true if anything
  // moved.
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

  // Marks the link as lost; only the first reason counts. Any thread.
  void Lose(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that writing failed: frames are dropped from now on, but Read() may
  // still receive data, such as the other end's reason.
  void LoseWriting(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // Returns why writing failed; ok if it did not.
  absl::Status write_error() const ABSL_LOCKS_EXCLUDED(mutex_);

  enum class Work {
    kNone,
    kNow,        // Progress() has work, or another thread is working
    kWaitsFull,  // frames wait until the transport takes more
  };
  // Returns the state for Arm(). With kWaitsFull, sets `*payload_bytes` to the
  // payload size of the oldest waiting frame.
  Work work(std::size_t* payload_bytes) const ABSL_LOCKS_EXCLUDED(mutex_);

  // "process 3 at 10.0.0.7:40112"
  const std::string& other_end() const { return other_end_; }

  // Writes queued frames, unless another thread does. Returns true if a frame
  // was sent.
  bool Flush() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Enqueue(const Frame& frame, const char* payload, SendDone* done,
               bool copy) ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes a batch, as the writer. Returns false once it has stopped being the
  // writer.
  bool WriteBatch(bool* moved) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends the farewell and drops the queue, as the writer; then stops being it.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes a frame that found no queue, as the writer; then stops being it.
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
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // there is a writer
  bool full_ ABSL_GUARDED_BY(mutex_) = false;     // result of the last Write()
  absl::Status why_ ABSL_GUARDED_BY(mutex_);      // not ok: lost
  absl::Status write_error_ ABSL_GUARDED_BY(mutex_);
  bool farewell_due_ ABSL_GUARDED_BY(mutex_) = false;

  std::atomic<bool> lost_{false};    // mirrors why_
  std::atomic<bool> queued_{false};  // frames in queue_, or a farewell, are due
  std::atomic<bool> reading_{false};  // whether a thread is the reader
  std::atomic<bool> told_{false};     // whether OnLost() has been called
};

}  // namespace troupe::comm

#endif  // COMM_QUEUED_LINK_H_

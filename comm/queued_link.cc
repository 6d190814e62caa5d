#include "comm/queued_link.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::comm {
namespace {

// Limit on the frames that one Write() gets.
constexpr std::size_t kBatchMax = 32;

using DoneList = absl::InlinedVector<SendDone*, kBatchMax>;

void CallAll(const DoneList& list) {
  for (SendDone* done : list) {
    if (done != nullptr) done->OnSent();
  }
}

}  // namespace

QueuedLink::QueuedLink(int peer, absl::string_view transport,
                       absl::string_view address)
    : peer_(peer),
      other_end_(absl::StrCat("process ", peer, " at ", address)),
      name_(absl::StrCat(transport, " to ", other_end_)) {}

QueuedLink::~QueuedLink() {
  DoneList done;
  {
    absl::MutexLock lock(&mutex_);
    TROUPE_CHECK(!writing_, "no thread uses a link that is destroyed");
    for (const Outgoing& out : queue_) done.push_back(out.done);
  }
  CallAll(done);
}

void QueuedLink::Send(const Frame& frame, const char* payload, SendDone* done,
                      bool copy) {
  TROUPE_CHECK(frame.bytes <= kFrameBytesMax, "senders cut long payloads");
  TROUPE_CHECK(frame.type != kReservedType, "this type is the links' own");
  Enqueue(frame, payload, done, copy);
}

void QueuedLink::Enqueue(const Frame& frame, const char* payload,
                         SendDone* done, bool copy) {
  Outgoing out;
  out.frame = frame;
  out.payload = payload;
  out.done = done;
  out.stays = !copy;
  bool dropped = false;
  {
    absl::MutexLock lock(&mutex_);
    dropped = ended();
    if (!dropped && (writing_ || !queue_.empty())) {
      if (copy) OwnPayload(&out);
      queue_.push_back(std::move(out));
      queued_.store(true, std::memory_order_release);
      // The writer checks the queue again; if the transport is full, Progress()
      // goes on.
      return;
    }
    if (!dropped) writing_ = true;
  }
  if (!dropped) {
    SendAtOnce(std::move(out), copy);
  } else if (done != nullptr) {
    done->OnSent();
  }
}

void QueuedLink::OwnPayload(Outgoing* out) {
  if (out->frame.bytes > 0) out->copy.assign(out->payload, out->frame.bytes);
  out->payload = nullptr;
}

void QueuedLink::SendAtOnce(Outgoing out, bool copy) {
  Outgoing* const one = &out;
  const Written written = Write(absl::MakeConstSpan(&one, 1));
  SendDone* const done = written.frames == 1 ? out.done : nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (written.frames == 0) {
      if (copy) OwnPayload(&out);
      queue_.push_front(std::move(out));
    }
    if (!queue_.empty() || written.full) {
      queued_.store(true, std::memory_order_release);
    }
    full_ = written.full;
    writing_ = false;
  }
  if (done != nullptr) done->OnSent();
  // Writes frames that other threads queued meanwhile, or ends a lost link.
  if (!written.full || lost()) Flush();
}

bool QueuedLink::Flush() {
  if (!queued_.load(std::memory_order_acquire)) return false;
  {
    absl::MutexLock lock(&mutex_);
    if (writing_) return false;
    writing_ = true;
  }
  bool moved = false;
  while (WriteBatch(&moved)) {
  }
  return moved;
}

bool QueuedLink::WriteBatch(bool* moved) {
  Outgoing* batch[kBatchMax];
  std::size_t count = 0;
  bool end = false;
  {
    absl::MutexLock lock(&mutex_);
    if (!ended()) {
      count = std::min(queue_.size(), kBatchMax);
      for (std::size_t i = 0; i < count; ++i) batch[i] = &queue_[i];
      if (count == 0 && !full_) {
        queued_.store(false, std::memory_order_release);
        writing_ = false;
        return false;
      }
    } else {
      end = true;
    }
  }
  if (end) {
    End();
    *moved = true;
    return false;
  }

  const Written written = Write(absl::MakeConstSpan(batch, count));
  DoneList done;
  bool again = true;
  {
    absl::MutexLock lock(&mutex_);
    for (std::size_t i = 0; i < written.frames; ++i) {
      done.push_back(queue_.front().done);
      queue_.pop_front();
    }
    full_ = written.full;
    again = !written.full || ended();
    if (!again) writing_ = false;
  }
  *moved |= written.frames > 0;
  CallAll(done);
  return again;
}

void QueuedLink::End() {
  absl::Status why;
  const Outgoing* begun = nullptr;
  bool farewell = false;
  {
    absl::MutexLock lock(&mutex_);
    why = why_;
    farewell = std::exchange(farewell_due_, false);
    if (!queue_.empty() && queue_.front().sent > 0) begun = &queue_.front();
  }
  if (farewell) SayFarewell(why, begun);
  EndWriting(why);
  DoneList done;
  {
    absl::MutexLock lock(&mutex_);
    for (const Outgoing& out : queue_) done.push_back(out.done);
    queue_.clear();
    full_ = false;
    writing_ = false;
    queued_.store(farewell_due_, std::memory_order_release);
  }
  CallAll(done);
}

bool QueuedLink::Progress() {
  bool moved = Flush();
  if (reading_.load(std::memory_order_relaxed) ||
      reading_.exchange(true, std::memory_order_acquire)) {
    return moved;
  }
  if (!lost()) moved |= Read();
  if (lost() && !told_.load(std::memory_order_relaxed)) {
    EndReading();
    TellLoss();
    moved = true;
  }
  reading_.store(false, std::memory_order_release);
  if (lost()) moved |= Flush() || GoOnWithFarewell();
  return moved;
}

void QueuedLink::TellLoss() {
  absl::Status why;
  {
    absl::MutexLock lock(&mutex_);
    why = why_;
  }
  sink_->OnLost(peer_, why);
  told_.store(true, std::memory_order_release);
}

bool QueuedLink::GoOnWithFarewell() {
  {
    absl::MutexLock lock(&mutex_);
    if (writing_) return false;
    writing_ = true;
  }
  const bool moved = FlushFarewell();
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  return moved;
}

void QueuedLink::Close(const absl::Status& why) {
  TROUPE_CHECK(!why.ok(), "a link ends with a reason");
  {
    absl::MutexLock lock(&mutex_);
    if (!why_.ok()) return;
    why_ = why;
    farewell_due_ = true;
    queued_.store(true, std::memory_order_release);
    lost_.store(true, std::memory_order_release);
  }
  Flush();
}

void QueuedLink::Lose(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (!why_.ok()) return;
  why_ = why;
  lost_.store(true, std::memory_order_release);
}

void QueuedLink::LoseWriting(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (write_error_.ok()) write_error_ = why;
}

absl::Status QueuedLink::write_error() const {
  absl::MutexLock lock(&mutex_);
  return write_error_;
}

QueuedLink::Work QueuedLink::work(std::size_t* payload_bytes) const {
  if (reading_.load(std::memory_order_acquire)) return Work::kNow;
  if (lost() && !told_.load(std::memory_order_acquire)) return Work::kNow;
  absl::MutexLock lock(&mutex_);
  if (writing_) return Work::kNow;
  if (queue_.empty() && !farewell_due_ && !full_) return Work::kNone;
  if (!full_ || ended()) return Work::kNow;
  *payload_bytes = queue_.empty() ? 0 : queue_.front().frame.bytes;
  return Work::kWaitsFull;
}

}  // namespace troupe::comm

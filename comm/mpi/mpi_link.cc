#include "comm/mpi/mpi_link.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "comm/farewell.h"
#include "comm/mpi/mpi_process.h"
#include "comm/queued_link.h"

namespace troupe::comm::internal {
namespace {

constexpr std::size_t kPackedMax = kMpiPackedBytesMax;
static_assert(sizeof(Frame) + kPackedMax < kMpiEagerBytes);
// Limits on the frames being sent at a time, and on the receives posted for
// headers.
constexpr std::size_t kSends = 16;
constexpr std::size_t kReceives = 8;
// Number of bytes that one Progress() receives, or a little more.
constexpr std::size_t kReadBytesMax = 2 << 20;
// Interval at which a sleeping thread polls: short after traffic, then growing.
constexpr absl::Duration kLookSoon = absl::Microseconds(20);
constexpr absl::Duration kLookSeldom = absl::Milliseconds(1);
// Limit on the wait for a payload in transit when a link ends.
constexpr absl::Duration kEndMax = absl::Milliseconds(100);

// Value of words[1] of a farewell whose sender was destroyed without a reason.
constexpr std::uint64_t kWasDestroyed = 1;

using Buffer = std::shared_ptr<char[]>;

bool IsPacked(const Frame& frame) { return frame.bytes <= kPackedMax; }

// A frame being sent: its copy, as one message or as two.
struct Sending {
  Buffer buffer;
  std::size_t capacity = 0;
  MPI_Request head = nullptr, payload = nullptr;
  bool head_due = false, payload_due = false;
};

struct Receiving {
  Buffer buffer;
  MPI_Request request = nullptr;
};

class MpiLink : public QueuedLink {
 public:
  MpiLink(std::shared_ptr<MpiContext> context, const MpiLinkOptions& options,
          const std::string& address)
      : QueuedLink(options.peer, "mpi", address),
        options_(options),
        context_(std::move(context)) {
    for (Receiving& receiving : receives_) {
      receiving.buffer.reset(new char[sizeof(Frame) + kPackedMax]);
      Listen(&receiving);
    }
  }
  ~MpiLink() override;

  bool Arm(pollfd* entry, absl::Duration* patience) override;

 private:
  Written Write(absl::Span<Outgoing* const> frames) override;
  bool Read() override;
  void SayFarewell(const absl::Status& why, const Outgoing* begun) override;
  bool FlushFarewell() override { return context_->TestAbandoned() && false; }
  void EndReading() override;

  // The writer calls these. Each loses the link if MPI fails.
  bool IsFree(Sending* sending);
  void Begin(const Outgoing& out, Sending* sending);
  void SendLastWords(const absl::Status& why, std::uint64_t destroyed);

  // The reader calls these.
  void Listen(Receiving* receiving);
  bool Test(MPI_Request* request, int* count);
  void TakeHead(Receiving* receiving, int count);
  void BeginPayload();
  void Check(const absl::Status& status) {
    if (!status.ok()) Lose(status);
  }
  void Moved() { quiet_.store(0, std::memory_order_relaxed); }

  const MpiLinkOptions options_;
  const std::shared_ptr<MpiContext> context_;

  std::array<Sending, kSends> sends_;  // a ring, used by the writer
  std::size_t next_send_ = 0;

  // Used by the reader alone.
  std::array<Receiving, kReceives> receives_;  // a ring
  std::size_t next_receive_ = 0;
  bool listens_ = true;
  // Receive whose frame ended the last Read(), to be posted anew; null: none.
  Receiving* handled_ = nullptr;
  bool payload_due_ = false;  // for frame_, at place_ or in own_
  Frame frame_;
  char* place_ = nullptr;
  MPI_Request payload_ = nullptr;
  Buffer own_;
  std::size_t own_bytes_ = 0;

  std::atomic<int> quiet_{0};  // number of calls of Arm() since anything moved
};

MpiLink::~MpiLink() {
  if (!lost()) SendLastWords(absl::UnavailableError(""), kWasDestroyed);
  EndReading();
  for (Sending& sending : sends_) {
    if (sending.head_due) context_->Abandon(sending.head, sending.buffer);
    if (sending.payload_due) context_->Abandon(sending.payload, sending.buffer);
  }
  context_->TestAbandoned();
}

QueuedLink::Written MpiLink::Write(absl::Span<Outgoing* const> frames) {
  Written written;
  for (const Outgoing* out : frames) {
    Sending* const sending = &sends_[next_send_];
    if (!IsFree(sending)) {
      written.full = !lost();
      break;
    }
    Begin(*out, sending);
    next_send_ = (next_send_ + 1) % kSends;
    ++written.frames;
  }
  if (written.frames > 0) Moved();
  return written;
}

bool MpiLink::IsFree(Sending* sending) {
  const auto test = [this](MPI_Request* request, bool* due) {
    if (!*due) return;
    const absl::StatusOr<bool> done = context_->Test(request);
    Check(done.status());
    *due = !done.ok() || !*done;
  };
  test(&sending->head, &sending->head_due);
  test(&sending->payload, &sending->payload_due);
  return !sending->head_due && !sending->payload_due;
}

void MpiLink::Begin(const Outgoing& out, Sending* sending) {
  const std::size_t bytes = sizeof(Frame) + out.frame.bytes;
  if (sending->capacity < bytes) {
    sending->capacity = std::max(bytes, sizeof(Frame) + kPackedMax);
    sending->buffer.reset(new char[sending->capacity]);
  }
  char* const buffer = sending->buffer.get();
  std::memcpy(buffer, &out.frame, sizeof(Frame));
  if (out.frame.bytes > 0) {
    std::memcpy(buffer + sizeof(Frame), out.bytes(), out.frame.bytes);
  }
  const bool packed = IsPacked(out.frame);
  const absl::Status head =
      context_->Send(buffer, packed ? bytes : sizeof(Frame), options_.rank,
                     options_.send_tag, &sending->head);
  Check(head);
  sending->head_due = head.ok();
  if (packed || !head.ok()) return;
  const absl::Status payload =
      context_->Send(buffer + sizeof(Frame), out.frame.bytes, options_.rank,
                     options_.send_tag + 1, &sending->payload);
  Check(payload);
  sending->payload_due = payload.ok();
}

void MpiLink::SayFarewell(const absl::Status& why, const Outgoing*) {
  SendLastWords(why, 0);
}

void MpiLink::SendLastWords(const absl::Status& why, std::uint64_t destroyed) {
  std::string words = FarewellBytes(why);
  std::memcpy(&words[offsetof(Frame, words) + sizeof(std::uint64_t)],
              &destroyed, sizeof(destroyed));
  Buffer buffer(new char[words.size()]);
  std::memcpy(buffer.get(), words.data(), words.size());
  MPI_Request request = nullptr;
  const absl::Status sent = context_->Send(
      buffer.get(), words.size(), options_.rank, options_.send_tag, &request);
  // An error here cannot be reported to the peer any more.
  if (sent.ok()) context_->Abandon(request, std::move(buffer));
}

void MpiLink::Listen(Receiving* receiving) {
  const absl::Status status = context_->Receive(
      receiving->buffer.get(), sizeof(Frame) + kPackedMax, options_.rank,
      options_.receive_tag, &receiving->request);
  if (!status.ok()) receiving->request = nullptr;
  Check(status);
}

bool MpiLink::Test(MPI_Request* request, int* count) {
  const absl::StatusOr<bool> done = context_->Test(request, count);
  Check(done.status());
  return done.ok() && *done;
}

bool MpiLink::Read() {
  if (handled_ != nullptr && !lost()) Listen(std::exchange(handled_, nullptr));
  std::size_t taken = 0;
  while (!lost() && taken < kReadBytesMax) {
    int count = 0;
    if (payload_due_) {
      if (!Test(&payload_, &count)) break;
      payload_due_ = false;
      if (static_cast<std::size_t>(count) != frame_.bytes) {
        Close(absl::DataLossError(
            absl::StrCat(other_end(), " announced a payload of ", frame_.bytes,
                         " bytes, but the payload has ", count)));
        break;
      }
      taken += frame_.bytes;
      Take(frame_, place_);
      continue;
    }
    Receiving* const receiving = &receives_[next_receive_];
    if (!Test(&receiving->request, &count)) break;
    taken += count;
    receiving->request = nullptr;
    next_receive_ = (next_receive_ + 1) % kReceives;
    TakeHead(receiving, count);
    if (!payload_due_) {
      // A collective that the frame completes does not wait until MPI has been
      // called for the next one.
      handled_ = receiving;
      break;
    }
    if (!lost()) Listen(receiving);
  }
  if (taken > 0) Moved();
  return taken > 0;
}

void MpiLink::TakeHead(Receiving* receiving, int count) {
  const char* const buffer = receiving->buffer.get();
  const std::size_t bytes = count;
  if (bytes >= sizeof(Frame)) std::memcpy(&frame_, buffer, sizeof(Frame));
  const std::size_t packed = IsPacked(frame_) ? frame_.bytes : 0;
  if (bytes < sizeof(Frame) || frame_.bytes > kFrameBytesMax ||
      bytes != sizeof(Frame) + packed) {
    Close(absl::DataLossError(absl::StrCat(
        other_end(), " sent a message of ", count,
        " bytes that is no frame; start all processes from the same build")));
    return;
  }
  const char* const payload = buffer + sizeof(Frame);
  if (frame_.type == kReservedType) {
    Lose(frame_.words[1] == kWasDestroyed
             ? absl::UnavailableError(
                   absl::StrCat(other_end(), " closed the link"))
             : ReadFarewell(frame_, payload));
    return;
  }
  if (frame_.bytes == 0) {
    Take(frame_, nullptr);
    return;
  }
  place_ = Place(frame_);
  if (!IsPacked(frame_)) {
    BeginPayload();
  } else if (place_ == nullptr) {
    Take(frame_, payload);
  } else {
    std::memcpy(place_, payload, frame_.bytes);
    Take(frame_, place_);
  }
}

void MpiLink::BeginPayload() {
  if (place_ == nullptr) {
    if (own_bytes_ < frame_.bytes) {
      own_bytes_ = std::min<std::size_t>(kFrameBytesMax, 2 * frame_.bytes);
      own_.reset(new char[own_bytes_]);
    }
    place_ = own_.get();
  }
  const absl::Status status = context_->Receive(
      place_, frame_.bytes, options_.rank, options_.receive_tag + 1, &payload_);
  Check(status);
  payload_due_ = status.ok();
}

void MpiLink::EndReading() {
  if (!std::exchange(listens_, false)) return;
  for (Receiving& receiving : receives_) {
    if (receiving.request == nullptr) continue;
    context_->Cancel(&receiving.request);
    context_->Abandon(receiving.request, std::move(receiving.buffer));
  }
  if (!payload_due_) return;
  if (place_ == own_.get()) {
    context_->Cancel(&payload_);
    context_->Abandon(payload_, std::move(own_));
    return;
  }
  const absl::Time until = absl::Now() + kEndMax;
  context_->Cancel(&payload_);
  while (absl::Now() < until) {
    const absl::StatusOr<bool> done = context_->Test(&payload_);
    if (!done.ok() || *done) return;
    std::this_thread::yield();
  }
  context_->Break(
      absl::UnavailableError(absl::StrCat("MPI holds memory for a payload of ",
                                          other_end(), " that does not come")));
}

bool MpiLink::Arm(pollfd* entry, absl::Duration* patience) {
  std::size_t payload_bytes = 0;
  const Work found = work(&payload_bytes);
  if (found == Work::kNow) return false;
  *entry = {-1, 0, 0};
  const int quiet = quiet_.fetch_add(1, std::memory_order_relaxed);
  const absl::Duration look =
      found == Work::kWaitsFull
          ? kLookSoon
          : std::min(kLookSeldom, kLookSoon * (1 << std::min(quiet / 8, 6)));
  *patience = std::min(*patience, look);
  return true;
}

}  // namespace

std::unique_ptr<Link> MakeMpiLink(std::shared_ptr<MpiContext> context,
                                  const MpiLinkOptions& options) {
  const std::string address = options.address.empty()
                                  ? absl::StrCat("MPI rank ", options.rank)
                                  : options.address;
  return std::make_unique<MpiLink>(std::move(context), options, address);
}

}  // namespace troupe::comm::internal

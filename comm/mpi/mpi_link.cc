#include "comm/mpi/mpi_link.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "comm/farewell.h"
#include "comm/mpi/mpi_payloads.h"
#include "comm/mpi/mpi_process.h"
#include "comm/mpi/mpi_sends.h"
#include "comm/queued_link.h"

namespace troupe::comm::internal {
namespace {

constexpr std::size_t kPackedMax = kMpiPackedBytesMax;
static_assert(sizeof(Frame) + kPackedMax < kMpiEagerBytes);
// Number of receives posted for headers.
constexpr std::size_t kReceives = 8;
// Interval at which a sleeping thread polls: short after traffic, then growing.
constexpr absl::Duration kLookSoon = absl::Microseconds(20);
constexpr absl::Duration kLookSeldom = absl::Milliseconds(1);

// Value of words[1] of a farewell whose sender was destroyed without a reason.
constexpr std::uint64_t kWasDestroyed = 1;

using Buffer = std::shared_ptr<char[]>;

bool IsPacked(const Frame& frame) { return frame.bytes <= kPackedMax; }

// Returns the last message to the other end.
std::string LastWords(const absl::Status& why, std::uint64_t destroyed) {
  std::string words = FarewellBytes(why);
  std::memcpy(&words[offsetof(Frame, words) + sizeof(std::uint64_t)],
              &destroyed, sizeof(destroyed));
  return words;
}

struct Receiving {
  Buffer buffer;
  MPI_Request request = nullptr;
  int count = 0;  // number of bytes received
};

// Returns the header as it was sent; an empty one if the message is too short.
Frame SentHeader(const Receiving& receiving) {
  Frame frame;
  if (static_cast<std::size_t>(receiving.count) >= sizeof(Frame)) {
    std::memcpy(&frame, receiving.buffer.get(), sizeof(Frame));
  }
  return frame;
}

bool IsLong(const Receiving& receiving) {
  return !IsPacked(SentHeader(receiving));
}

class MpiLink : public QueuedLink {
 public:
  MpiLink(std::shared_ptr<MpiContext> context, const MpiLinkOptions& options,
          const std::string& address)
      : QueuedLink(options.peer, "mpi", address),
        options_(options),
        context_(std::move(context)),
        sends_(context_, options.rank, options.send_tag),
        payloads_(context_, options.rank, options.receive_tag + 1) {
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
  void EndWriting(const absl::Status& why) override;
  void EndReading() override;

  // The reader calls these.
  void Listen(Receiving* receiving);
  bool Test(MPI_Request* request, int* count);
  // Returns whether a payload, or the end of one, has arrived.
  bool TakePayload();
  // Returns whether there is a header that can be taken.
  bool HasHead();
  void TakeHead(Receiving* receiving);
  void TakeLastWords(const Frame& frame, const char* payload);
  absl::Status Unreceived() const {
    return absl::UnavailableError(absl::StrCat(
        other_end(),
        " has not received a payload, whose memory MPI holds; start all "
        "processes anew"));
  }
  void Check(const absl::Status& status) {
    if (!status.ok()) Lose(status);
  }
  void Moved() { quiet_.store(0, std::memory_order_relaxed); }

  const MpiLinkOptions options_;
  const std::shared_ptr<MpiContext> context_;

  MpiSends sends_;  // used by the writer

  // Used by the reader alone.
  std::array<Receiving, kReceives> receives_;  // a ring
  std::size_t next_receive_ = 0;
  bool listens_ = true;
  // Receive whose frame ended the last Read(), to be posted anew; null: none.
  Receiving* handled_ = nullptr;
  // Whether the header in the next receive waits for payloads before it.
  bool head_waits_ = false;
  MpiPayloads payloads_;

  std::atomic<int> quiet_{0};  // number of calls of Arm() since anything moved
};

MpiLink::~MpiLink() {
  const absl::Status why = absl::UnavailableError("");
  if (!lost()) sends_.SendLastWords(LastWords(why, kWasDestroyed));
  sends_.End(LastWords(why, kWasDestroyed), Unreceived());
  EndReading();
}

QueuedLink::Written MpiLink::Write(absl::Span<Outgoing* const> frames) {
  Written written;
  Check(sends_.Release());
  for (Outgoing* out : frames) {
    if (lost()) break;
    const absl::StatusOr<bool> room = sends_.HasRoom();
    Check(room.status());
    written.full = room.ok() && !*room;
    if (!room.ok() || !*room) break;
    Check(sends_.Begin(out->frame, out->bytes(), out->stays, &out->done));
    ++written.frames;
  }
  written.full |= sends_.holds();
  if (written.frames > 0) Moved();
  return written;
}

void MpiLink::SayFarewell(const absl::Status& why, const Outgoing*) {
  sends_.SendLastWords(LastWords(why, 0));
}

void MpiLink::EndWriting(const absl::Status& why) {
  sends_.End(LastWords(why, 0), Unreceived());
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
  bool moved = false;
  // A collective that a frame completes, or can go on with, does not wait until
  // MPI has been called for the next frame.
  bool took = false;
  while (!lost() && !took) {
    took = payloads_.due() && TakePayload();
    if (took || !HasHead()) break;
    Receiving* const receiving = &receives_[next_receive_];
    next_receive_ = (next_receive_ + 1) % kReceives;
    head_waits_ = false;
    moved = true;
    const bool is_long = IsLong(*receiving);
    TakeHead(receiving);
    if (!is_long) {
      took = true;
      handled_ = receiving;
    } else if (!lost()) {
      Listen(receiving);
    }
  }
  if (moved || took) Moved();
  return moved || took;
}

bool MpiLink::HasHead() {
  Receiving* const receiving = &receives_[next_receive_];
  if (!head_waits_) {
    if (!Test(&receiving->request, &receiving->count)) return false;
    receiving->request = nullptr;
    head_waits_ = true;
  }
  return !payloads_.due() || (IsLong(*receiving) && payloads_.HasRoom());
}

bool MpiLink::TakePayload() {
  const absl::StatusOr<MpiPayloads::State> state = payloads_.Test();
  Check(state.status());
  if (!state.ok() || *state == MpiPayloads::State::kDue) return false;
  const MpiPayloads::Payload& payload = payloads_.oldest();
  if (*state == MpiPayloads::State::kWhole) {
    Take(payload.frame, payload.data);
  } else if (*state == MpiPayloads::State::kWrongSize) {
    Close(absl::DataLossError(absl::StrCat(
        other_end(), " announced a payload of ", payload.frame.bytes,
        " bytes, but the payload has ", payload.bytes)));
  } else {
    const char* const words = payload.last_words.get();
    Frame farewell;
    std::memcpy(&farewell, words, sizeof(Frame));
    TakeLastWords(farewell, words + sizeof(Frame));
  }
  return true;
}

void MpiLink::TakeLastWords(const Frame& frame, const char* payload) {
  Lose(frame.words[1] == kWasDestroyed ? absl::UnavailableError(absl::StrCat(
                                             other_end(), " closed the link"))
                                       : ReadFarewell(frame, payload));
}

void MpiLink::TakeHead(Receiving* receiving) {
  const char* const buffer = receiving->buffer.get();
  const std::size_t bytes = receiving->count;
  Frame frame = SentHeader(*receiving);
  const bool confirms = (frame.bytes & kMpiConfirmedBit) != 0;
  frame.bytes &= ~kMpiConfirmedBit;
  const std::size_t packed = IsPacked(frame) ? frame.bytes : 0;
  if (bytes < sizeof(Frame) || frame.bytes > kFrameBytesMax ||
      bytes != sizeof(Frame) + packed) {
    Close(absl::DataLossError(absl::StrCat(
        other_end(), " sent a message of ", bytes,
        " bytes that is no frame; start all processes from the same build")));
    return;
  }
  const char* const payload = buffer + sizeof(Frame);
  if (frame.type == kReservedType) {
    TakeLastWords(frame, payload);
    return;
  }
  if (frame.bytes == 0) {
    Take(frame, nullptr);
    return;
  }
  char* const place = Place(frame);
  if (!IsPacked(frame)) {
    Check(payloads_.Begin(frame, place, confirms));
  } else if (place == nullptr) {
    Take(frame, payload);
  } else {
    std::memcpy(place, payload, frame.bytes);
    Take(frame, place);
  }
}

void MpiLink::EndReading() {
  if (!std::exchange(listens_, false)) return;
  for (Receiving& receiving : receives_) {
    if (receiving.request == nullptr) continue;
    context_->Cancel(&receiving.request);
    context_->Abandon(receiving.request, std::move(receiving.buffer));
  }
  payloads_.End(
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

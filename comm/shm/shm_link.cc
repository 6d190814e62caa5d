#include "comm/shm/shm_link.h"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm/queued_link.h"
#include "comm/shm/control_socket.h"
#include "comm/shm/doorbell.h"
#include "comm/shm/lent_ranges.h"
#include "comm/shm/ring.h"

namespace troupe::comm {
namespace {

// Number of bytes that one Progress() receives, or a little more.
constexpr std::size_t kReadBytesMax = 2 << 20;
// Number of bytes after which progress is published to the other end, so that
// both ends copy at the same time; also published after every call.
constexpr std::size_t kShowBytes = 64 << 10;
// Number of calls without a frame per read of the socket, which costs a system
// call.
constexpr int kIdlePerLook = 256;

// Messages between links about memory by reference, in words[1] of a frame of
// their own; words[2] is the range's number.
enum RangeWord : std::uint64_t {
  kNoRange = 0,
  kOffered,  // over the socket, with a descriptor; and in the ring
  kMapped,   // this and the following: in the ring alone
  kNotMapped,
  kTakenBack,
};

Frame RangeFrame(RangeWord word, std::uint64_t id) {
  Frame frame;
  frame.type = kReservedType;
  frame.words[1] = word;
  frame.words[2] = id;
  return frame;
}

class ShmLink : public QueuedLink {
 public:
  ShmLink(std::shared_ptr<ShmSegment> segment, base::OwnedFd socket,
          const ShmLinkOptions& options)
      : QueuedLink(options.peer, "shm", options.address),
        segment_(std::move(segment)),
        control_(std::move(socket)),
        writer_(segment_->ring_head(options.side),
                segment_->ring_data(options.side), segment_->ring_bytes()),
        reader_(segment_->ring_head(1 - options.side),
                segment_->ring_data(1 - options.side), segment_->ring_bytes()),
        doorbell_(segment_->sleeps(options.side),
                  segment_->sleeps(1 - options.side)),
        given_up_here_(segment_->given_up(options.side)),
        given_up_there_(segment_->given_up(1 - options.side)) {}
  ~ShmLink() override { EndReading(); }

  bool Arm(pollfd* entry, absl::Duration* patience) override;
  bool Lend(const SharedRange& range) override;
  void TakeBack(std::uint64_t id) override;
  std::shared_ptr<char> Borrow(std::uint64_t id, std::uint64_t offset,
                               std::size_t bytes) const override {
    return borrowed_.Find(id, offset, bytes);
  }
  bool BorrowedHolds() const override {
    // Ordered after all reads of borrowed memory.
    std::atomic_thread_fence(std::memory_order_acquire);
    return given_up_there_->load(std::memory_order_relaxed) == 0;
  }

 private:
  Written Write(absl::Span<Outgoing* const> frames) override;
  bool Read() override;
  void SayFarewell(const absl::Status& why, const Outgoing* begun) override;
  // Declares that memory lent by this end may be reused from now on.
  void EndReading() override {
    given_up_here_->store(1, std::memory_order_seq_cst);
  }

  // Wakes up the other process, if it sleeps.
  void Ring();
  // Receives frames. Returns false if there were none.
  bool ReadRing();
  // Reads wake-ups and the end of the link. Returns false if there was nothing.
  bool ReadSocket();
  // Handles a frame of the links' own. Returns false if it is invalid.
  bool HearInRing(const Frame& frame);
  bool HearFromSocket(const Frame& frame);
  bool Borrow(std::uint64_t id);
  void LoseBroken();

  const std::shared_ptr<ShmSegment> segment_;
  ControlSocket control_;  // received from by the reader
  RingWriter writer_;      // used by the writer
  RingReader reader_;      // used by the reader
  Doorbell doorbell_;
  std::atomic<std::uint32_t>* const given_up_here_;
  std::atomic<std::uint32_t>* const given_up_there_;
  LentRanges lent_;
  BorrowedRanges borrowed_;
  std::atomic<bool> look_at_socket_{false};
  // Used by the reader alone:
  int idle_ = 0;
  absl::Status end_;  // not ok: the end, once the ring is empty
};

ShmLink::Written ShmLink::Write(absl::Span<Outgoing* const> frames) {
  Written written;
  for (Outgoing* out : frames) {
    const RingWriter::Result result = writer_.Put(out->frame, out->bytes());
    if (result == RingWriter::Result::kBroken) {
      LoseBroken();
      break;
    }
    written.full = result == RingWriter::Result::kFull;
    if (written.full) break;
    ++written.frames;
    if (writer_.unpublished_bytes() >= kShowBytes) {
      writer_.Publish();
      Ring();
    }
  }
  if (writer_.unpublished_bytes() > 0) {
    writer_.Publish();
    Ring();
  }
  return written;
}

void ShmLink::Ring() {
  // A full socket contains wake-ups already.
  if (doorbell_.ClaimWakeUp()) control_.Send(RangeFrame(kNoRange, 0));
}

bool ShmLink::Read() {
  bool any = false;
  doorbell_.Disarm();
  if (look_at_socket_.load(std::memory_order_relaxed) ||
      idle_ >= kIdlePerLook) {
    look_at_socket_.store(false, std::memory_order_relaxed);
    idle_ = 0;
    any = ReadSocket();
  }
  if (ReadRing()) {
    idle_ = 0;
    return true;
  }
  if (!end_.ok()) Lose(end_);
  ++idle_;
  return any;
}

bool ShmLink::ReadRing() {
  bool any = false;
  std::size_t bytes = 0;
  while (bytes < kReadBytesMax && !lost()) {
    const RingReader::Result result = reader_.Next();
    if (result == RingReader::Result::kNothing) break;
    const Frame& frame = reader_.frame();
    const bool own =
        result == RingReader::Result::kFrame && frame.type == kReservedType;
    if (result == RingReader::Result::kBroken || (own && !HearInRing(frame))) {
      LoseBroken();
      break;
    }
    if (own) {
      any = true;
      reader_.Pop();
      continue;
    }
    const char* payload = reader_.payload();
    if (frame.bytes > 0) {
      if (char* const place = Place(frame); place != nullptr) {
        std::memcpy(place, payload, frame.bytes);
        payload = place;
      }
    }
    any = true;
    bytes += RecordBytes(frame.bytes);
    Take(frame, payload);
    reader_.Pop();
    if (reader_.unreleased_bytes() >= kShowBytes) {
      reader_.Release();
      Ring();
    }
  }
  if (reader_.unreleased_bytes() > 0) {
    reader_.Release();
    Ring();
  }
  return any;
}

bool ShmLink::ReadSocket() {
  if (!end_.ok()) return false;
  const ControlSocket::Received received = control_.Receive();
  if (received == ControlSocket::Received::kNothing) return false;
  if (received != ControlSocket::Received::kBytes) {
    end_ = absl::UnavailableError(
        absl::StrCat(other_end(), received == ControlSocket::Received::kClosed
                                      ? " closed the connection"
                                      : " reset the connection"));
    return true;
  }
  for (;;) {
    switch (control_.Next()) {
      case ControlSocket::Got::kNothing:
        return true;
      case ControlSocket::Got::kMessage:
        if (HearFromSocket(control_.frame())) break;
        LoseBroken();
        return true;
      case ControlSocket::Got::kFarewell:
        end_ = control_.farewell();
        return true;
      case ControlSocket::Got::kBroken:
        LoseBroken();
        return true;
    }
  }
}

bool ShmLink::HearFromSocket(const Frame& frame) {
  if (frame.words[1] == kOffered) return Borrow(frame.words[2]);
  if (doorbell_.Rearm()) Flush();  // uses room made before the flag was raised
  return frame.words[1] == kNoRange;
}

bool ShmLink::Borrow(std::uint64_t id) {
  base::OwnedFd file = control_.TakeDescriptor();
  if (!file.valid()) return false;
  const absl::Status added = borrowed_.Add(id, std::move(file));
  if (absl::IsInvalidArgument(added)) return false;
  SendOwn(RangeFrame(added.ok() ? kMapped : kNotMapped, id));
  return true;
}

bool ShmLink::HearInRing(const Frame& frame) {
  if (frame.bytes > 0) return false;
  const std::uint64_t id = frame.words[2];
  if (frame.words[1] == kOffered) {  // its descriptor is in the socket
    look_at_socket_.store(true, std::memory_order_relaxed);
    return true;
  }
  if (frame.words[1] == kTakenBack) {
    borrowed_.Remove(id);
    return true;
  }
  if (frame.words[1] != kMapped && frame.words[1] != kNotMapped) return false;
  const absl::StatusOr<bool> gone =
      lent_.Answered(id, /*mapped=*/frame.words[1] == kMapped);
  if (gone.ok() && *gone) SendOwn(RangeFrame(kTakenBack, id));
  return gone.ok();
}

bool ShmLink::Lend(const SharedRange& range) {
  if (lost()) return false;
  const LentRanges::State state = lent_.Lend(range.id);
  if (state == LentRanges::State::kOffer) {
    if (control_.Send(RangeFrame(kOffered, range.id), range.fd)) {
      SendOwn(RangeFrame(kOffered, range.id));
    } else {
      lent_.NotOffered(range.id);
    }
  }
  return state == LentRanges::State::kReady;
}

void ShmLink::TakeBack(std::uint64_t id) {
  if (lent_.TakeBack(id)) SendOwn(RangeFrame(kTakenBack, id));
}

void ShmLink::LoseBroken() {
  Close(absl::DataLossError(
      absl::StrCat(other_end(), " wrote nonsense into the shared memory")));
}

void ShmLink::SayFarewell(const absl::Status& why, const Outgoing*) {
  // Also wakes up threads sleeping here, so that OnLost() is called.
  control_.Shutdown(why);
}

bool ShmLink::Arm(pollfd* entry, absl::Duration*) {
  look_at_socket_.store(true, std::memory_order_relaxed);
  doorbell_.Arm();
  // Checks for work after the flag is set: anything later causes a wake-up.
  std::size_t payload_bytes = 0;
  const Work waiting = work(&payload_bytes);
  if (waiting == Work::kNow) return false;
  *entry = {lost() ? -1 : control_.fd(), POLLIN, 0};
  if (lost()) return true;
  if (reader_.HasFrame()) return false;
  return waiting != Work::kWaitsFull || !writer_.HasRoom(payload_bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Link>> MakeShmLink(
    std::shared_ptr<ShmSegment> segment, base::OwnedFd socket,
    const ShmLinkOptions& options) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return absl::ErrnoToStatus(errno, "fcntl");
  }
  return std::make_unique<ShmLink>(std::move(segment), std::move(socket),
                                   options);
}

}  // namespace troupe::comm

#include "comm/tcp/tcp_link.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "comm/farewell.h"
#include "comm/queued_link.h"
#include "comm/tcp/frame_reader.h"

namespace troupe::comm {
namespace {

// Number of bytes that one Progress() receives, or a little more: about a piece
// of a collective, so that it is reduced while it is in the cache.
constexpr std::size_t kReadBytesMax = 256 << 10;

// A round trip takes about as long as to copy that much.
constexpr std::size_t kEagerBytes = std::size_t{64} << 10;

// Congestion control that every kernel has, and lets every user choose.
constexpr char kUnpaced[] = "reno";

constexpr char kZeros[kStreamUnitBytes] = {};

constexpr std::size_t Padded(std::size_t bytes) {
  return (bytes + kStreamUnitBytes - 1) / kStreamUnitBytes * kStreamUnitBytes;
}
constexpr std::size_t kHeadBytes = Padded(sizeof(Frame));
// Returns the size of a frame on the wire.
std::size_t WireBytes(const Frame& frame) {
  return kHeadBytes + Padded(frame.bytes);
}

// Returns a frame as it is on the wire.
std::string OnWire(const Frame& frame, const char* payload) {
  std::string bytes(reinterpret_cast<const char*>(&frame), sizeof(frame));
  bytes.resize(kHeadBytes);
  if (frame.bytes > 0) bytes.append(payload, frame.bytes);
  bytes.resize(WireBytes(frame));
  return bytes;
}

// Appends `bytes` at `data` and the zeros behind them, but for the first `sent`
// bytes, to `pieces`. Returns the number of pieces that it appended.
int AppendPadded(const void* data, std::size_t bytes, std::size_t sent,
                 iovec* pieces) {
  int count = 0;
  if (sent < bytes) {
    const char* const rest = static_cast<const char*>(data) + sent;
    pieces[count++] = {const_cast<char*>(rest), bytes - sent};
  }
  const std::size_t zeros = Padded(bytes) - std::max(sent, bytes);
  if (zeros > 0) pieces[count++] = {const_cast<char*>(kZeros), zeros};
  return count;
}

// Returns whether the other end of a TCP connection is on this host.
bool IsWithinHost(int socket) {
  sockaddr_storage here{}, there{};
  socklen_t here_bytes = sizeof(here), there_bytes = sizeof(there);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&here), &here_bytes) !=
          0 ||
      ::getpeername(socket, reinterpret_cast<sockaddr*>(&there),
                    &there_bytes) != 0 ||
      here.ss_family != there.ss_family) {
    return false;
  }
  if (here.ss_family == AF_INET) {
    return reinterpret_cast<sockaddr_in&>(here).sin_addr.s_addr ==
           reinterpret_cast<sockaddr_in&>(there).sin_addr.s_addr;
  }
  return here.ss_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<sockaddr_in6&>(here).sin6_addr,
                     &reinterpret_cast<sockaddr_in6&>(there).sin6_addr,
                     sizeof(in6_addr)) == 0;
}

class TcpLink : public QueuedLink {
 public:
  TcpLink(base::OwnedFd socket, std::unique_ptr<ByteStream> stream,
          base::OwnedFd epoll, const TcpLinkOptions& options)
      : QueuedLink(options.peer, options.transport, options.address),
        socket_(std::move(socket)),
        stream_(std::move(stream)),
        epoll_(std::move(epoll)) {}

  bool Arm(pollfd* entry, absl::Duration* patience) override;
  std::size_t eager_bytes() const override { return kEagerBytes; }

 private:
  Written Write(absl::Span<Outgoing* const> frames) override;
  bool Read() override;
  void SayFarewell(const absl::Status& why, const Outgoing* begun) override;
  bool FlushFarewell() override;

  // Sets whether the epoll descriptor also reports that the socket has room.
  void WatchRoom(bool watch);
  // Handles all frames in the reader, until the link is lost.
  void TakeAll();
  // Loses the link after `result` of the stream: 0, its end, or an error.
  void LoseReading(ssize_t result);
  absl::Status ConnectionError(ssize_t result);

  const base::OwnedFd socket_;
  const std::unique_ptr<ByteStream> stream_;
  // Polled in place of the socket: it can start to watch for room while another
  // thread sleeps on it already.
  const base::OwnedFd epoll_;
  bool watches_room_ = false;                // used by the writer
  std::string last_words_;                   // unsent rest; used by the writer
  std::atomic<bool> has_last_words_{false};  // for Arm()
  FrameReader reader_{kStreamUnitBytes};     // used by the reader
};

TcpLink::Written TcpLink::Write(absl::Span<Outgoing* const> frames) {
  constexpr int kPiecesMax = 128;
  constexpr int kPiecesPerFrame = 4;
  iovec pieces[kPiecesMax];
  int count = 0;
  std::size_t total = 0;
  for (Outgoing* out : frames) {
    if (count + kPiecesPerFrame > kPiecesMax) break;
    if (out->sent < kHeadBytes) {
      count +=
          AppendPadded(&out->frame, sizeof(Frame), out->sent, pieces + count);
    }
    const std::size_t payload_sent =
        std::max(out->sent, kHeadBytes) - kHeadBytes;
    count += AppendPadded(out->bytes(), out->frame.bytes, payload_sent,
                          pieces + count);
    total += WireBytes(out->frame) - out->sent;
  }
  const ssize_t sent = stream_->Write(pieces, count);
  Written written;
  if (sent < 0) {
    if (sent == -EINTR) return written;
    written.full = sent == -EAGAIN;
    if (!written.full) {
      LoseWriting(ConnectionError(sent));
      return written;
    }
  }
  std::size_t rest = std::max<ssize_t>(sent, 0);
  written.full = rest < total || stream_->HasOutput();
  for (Outgoing* out : frames) {
    const std::size_t here = std::min(rest, WireBytes(out->frame) - out->sent);
    out->sent += here;
    rest -= here;
    if (out->sent < WireBytes(out->frame)) break;
    ++written.frames;
  }
  WatchRoom(written.full);
  return written;
}

void TcpLink::WatchRoom(bool watch) {
  if (watch == watches_room_) return;
  watches_room_ = watch;
  epoll_event event{};
  event.events = EPOLLIN;
  if (watch) event.events |= EPOLLOUT;
  const int error =
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket_.get(), &event);
  TROUPE_CHECK(error == 0, "the socket is in its epoll instance");
}

bool TcpLink::Read() {
  std::size_t taken = 0;
  while (!lost() && taken < kReadBytesMax) {
    iovec room[2];
    const int pieces = reader_.Room(room);
    std::size_t wanted = 0;
    for (int i = 0; i < pieces; ++i) wanted += room[i].iov_len;
    const ssize_t got = stream_->Read(room, pieces);
    if (got <= 0) {
      if (got == -EINTR) continue;
      if (got == -EAGAIN) {
        const absl::Status error = write_error();
        if (!error.ok()) Lose(error);
        break;
      }
      LoseReading(got);
      break;
    }
    taken += got;
    reader_.Filled(got);
    TakeAll();
    // No more bytes available.
    if (static_cast<std::size_t>(got) < wanted) break;
  }
  return taken > 0;
}

void TcpLink::TakeAll() {
  const auto place = [this](const Frame& frame) -> char* {
    return frame.type == kReservedType ? nullptr : Place(frame);
  };
  while (!lost()) {
    const FrameReader::Got got = reader_.Next(place);
    const Frame& frame = reader_.frame();
    if (got == FrameReader::Got::kMore) return;
    if (got == FrameReader::Got::kBad) {
      Close(absl::DataLossError(
          absl::StrCat(other_end(), " sent a frame of ", frame.bytes,
                       " bytes; the limit is ", kFrameBytesMax)));
    } else if (frame.type == kReservedType) {
      Lose(ReadFarewell(frame, reader_.payload()));
    } else {
      Take(frame, reader_.payload());
    }
  }
}

void TcpLink::LoseReading(ssize_t result) {
  Lose(result == 0 ? absl::UnavailableError(
                         absl::StrCat(other_end(), " closed the connection"))
                   : ConnectionError(result));
}

absl::Status TcpLink::ConnectionError(ssize_t result) {
  const std::string what =
      absl::StrCat("the connection to ", other_end(), " is lost");
  if (result == -EPROTO) {
    return absl::UnavailableError(
        absl::StrCat(what, ": TLS: ", stream_->protocol_error()));
  }
  return absl::UnavailableError(
      absl::ErrnoToStatus(static_cast<int>(-result), what).message());
}

void TcpLink::SayFarewell(const absl::Status& why, const Outgoing* begun) {
  // Wakes up sleeping threads, so that OnLost() is called.
  ::shutdown(socket_.get(), SHUT_RD);
  if (!write_error().ok()) return;
  last_words_.clear();
  if (begun != nullptr) {
    const Outgoing& out = *begun;
    last_words_ = OnWire(out.frame, out.bytes());
    last_words_.erase(0, out.sent);
  }
  const std::string farewell = FarewellBytes(why);
  Frame frame;
  std::memcpy(&frame, farewell.data(), sizeof(frame));
  last_words_ += OnWire(frame, farewell.data() + sizeof(frame));
  FlushFarewell();
}

bool TcpLink::FlushFarewell() {
  if (last_words_.empty() && !stream_->HasOutput()) return false;
  iovec piece = {last_words_.data(), last_words_.size()};
  const ssize_t sent = stream_->Write(&piece, 1);
  const bool failed = sent < 0 && sent != -EAGAIN && sent != -EINTR;
  if (failed) last_words_.clear();
  if (sent > 0) last_words_.erase(0, sent);
  const bool rest = !failed && (!last_words_.empty() || stream_->HasOutput());
  if (!rest) ::shutdown(socket_.get(), SHUT_WR);
  has_last_words_.store(rest, std::memory_order_release);
  return sent > 0;
}

bool TcpLink::Arm(pollfd* entry, absl::Duration* patience) {
  std::size_t payload_bytes = 0;
  if (work(&payload_bytes) == Work::kNow) return false;
  if (!lost() && stream_->HasInput()) return false;
  *entry = {epoll_.get(), POLLIN, 0};
  if (lost()) {
    // The socket of a lost link is always readable.
    entry->fd = -1;
    if (has_last_words_.load(std::memory_order_acquire)) {
      *patience = std::min(*patience, absl::Milliseconds(10));
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Link>> MakeTcpLink(
    base::OwnedFd socket, const TcpLinkOptions& options) {
  auto plain = MakePlainStream(socket.get());
  return MakeStreamLink(std::move(socket), std::move(plain), options);
}

absl::StatusOr<std::unique_ptr<Link>> MakeStreamLink(
    base::OwnedFd socket, std::unique_ptr<ByteStream> stream,
    const TcpLinkOptions& options) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return absl::ErrnoToStatus(errno, "fcntl");
  }
  // A Unix socket lacks this option, and sends at once anyway.
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // Within a host no packet is lost, so that any algorithm does; but one that
  // paces, such as BBR, halves the rate. If the kernel refuses, its own stays.
  if (IsWithinHost(socket.get())) {
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, kUnpaced,
                 sizeof(kUnpaced) - 1);
  }
  base::OwnedFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return absl::ErrnoToStatus(errno, "epoll_create1");
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) {
    return absl::ErrnoToStatus(errno, "epoll_ctl");
  }
  return std::make_unique<TcpLink>(std::move(socket), std::move(stream),
                                   std::move(epoll), options);
}

}  // namespace troupe::comm

#include "tools/trainer/doctor/doctor_stream.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "comm/connect/sockets.h"

namespace troupe::tools {
namespace {

// Returns milliseconds for poll(), rounded up.
int MillisUntil(absl::Time deadline) {
  const absl::Duration left =
      std::max(deadline - absl::Now(), absl::ZeroDuration());
  return static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
}

}  // namespace

absl::StatusOr<base::OwnedFd> ReachDoctor(const base::HostPort& peer,
                                          absl::Time deadline) {
  TROUPE_ASSIGN_OR_RETURN(base::OwnedFd socket,
                          comm::ConnectTcp(peer.ToString(), /*attempt=*/0));
  pollfd entry = {socket.get(), POLLOUT, 0};
  if (::poll(&entry, 1, MillisUntil(deadline)) != 1) {
    return absl::DeadlineExceededError("no answer: not even a refusal");
  }
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) return socket;
  if (error == ECONNREFUSED) {
    return absl::FailedPreconditionError(
        "reached, and no doctor listens; start \"trainer doctor --listen "
        "--certs=DIR\" there, to compare clocks, versions and speed");
  }
  return absl::UnavailableError(std::strerror(error));
}

DoctorStream::DoctorStream(base::OwnedFd socket,
                           std::shared_ptr<comm::TlsContext> context,
                           bool accepts, int stop)
    : socket_(std::move(socket)),
      stop_(stop),
      stream_(std::move(context), socket_.get(), accepts) {}

absl::Status DoctorStream::Handshake() {
  while (true) {
    switch (stream_.Handshake()) {
      case comm::TlsStream::State::kDone:
        return absl::OkStatus();
      case comm::TlsStream::State::kFailed:
        return absl::UnauthenticatedError(stream_.error().message());
      case comm::TlsStream::State::kWaits:
        TROUPE_RETURN_IF_ERROR(Wait(stream_.events()));
    }
  }
}

absl::Status DoctorStream::Read(void* data, std::size_t size) {
  return Move(static_cast<char*>(data), size, /*reads=*/true);
}

absl::Status DoctorStream::Write(const void* data, std::size_t size) {
  TROUPE_RETURN_IF_ERROR(Move(static_cast<char*>(const_cast<void*>(data)), size,
                              /*reads=*/false));
  while (stream_.HasOutput()) {
    const ssize_t flushed = stream_.Write(nullptr, 0);
    if (flushed < 0) TROUPE_RETURN_IF_ERROR(OrWait(flushed, POLLOUT));
  }
  return absl::OkStatus();
}

absl::Status DoctorStream::WriteText(absl::string_view text) {
  const std::uint64_t size = std::min(text.size(), kDoctorTextBytesMax);
  TROUPE_RETURN_IF_ERROR(Write(&size, sizeof(size)));
  return Write(text.data(), size);
}

absl::StatusOr<std::string> DoctorStream::ReadText() {
  std::uint64_t size = 0;
  TROUPE_RETURN_IF_ERROR(Read(&size, sizeof(size)));
  if (size > kDoctorTextBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a text of ", size,
                     " bytes is no doctor's; start the same "
                     "trainer on both hosts"));
  }
  std::string text(size, '\0');
  TROUPE_RETURN_IF_ERROR(Read(&text[0], text.size()));
  return text;
}

absl::Status DoctorStream::Move(char* data, std::size_t size, bool reads) {
  while (size > 0) {
    iovec piece = {data, size};
    const ssize_t moved =
        reads ? stream_.Read(&piece, 1) : stream_.Write(&piece, 1);
    if (moved == 0 && reads) return absl::UnavailableError("it broke off");
    if (moved < 0) {
      TROUPE_RETURN_IF_ERROR(OrWait(moved, reads ? POLLIN : POLLOUT));
      continue;
    }
    data += moved;
    size -= static_cast<std::size_t>(moved);
  }
  return absl::OkStatus();
}

absl::Status DoctorStream::OrWait(ssize_t error, short events) {
  if (error == -EAGAIN) return Wait(events);
  if (error == -EPROTO) {
    return absl::UnauthenticatedError(stream_.protocol_error());
  }
  return absl::UnavailableError(std::strerror(static_cast<int>(-error)));
}

absl::Status DoctorStream::Wait(short events) {
  pollfd entries[] = {{socket_.get(), events, 0}, {stop_, POLLIN, 0}};
  const int ready = ::poll(entries, 2, MillisUntil(deadline_));
  if (ready > 0 && entries[1].revents != 0) {
    return absl::CancelledError("this doctor ends");
  }
  if (ready > 0 || absl::Now() < deadline_) return absl::OkStatus();
  return absl::DeadlineExceededError("no answer in time");
}

}  // namespace troupe::tools

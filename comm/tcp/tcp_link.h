// Frames over a connected stream socket: TCP, or a Unix stream socket.
//
//   TcpLinkOptions options;
//   options.peer = 3;
//   options.address = "10.0.0.7:40112";
//   absl::StatusOr<std::unique_ptr<Link>> link =
//       MakeTcpLink(std::move(socket), options);
//
// On the wire: 48 bytes of Frame, then its payload, each filled up with zeros
// to a multiple of kStreamUnitBytes, so that the kernel copies whole cache
// lines: a fifth less time for payloads of 64 KB. Both are sent from the
// caller's memory in one system call, together with other frames that wait. The
// kernel writes received payloads straight to the address from
// FrameSink::Place(), but for the part that was read along with the header. One
// call receives many small frames.
//
// Received data is not trusted: a payload above kFrameBytesMax ends the link.
//
// Cost: two descriptors, 68 KiB of memory, and up to kFrameBytesMax more if
// large payloads are not placed.

#ifndef COMM_TCP_TCP_LINK_H_
#define COMM_TCP_TCP_LINK_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/files/owned_fd.h"
#include "comm/link.h"
#include "comm/tcp/byte_stream.h"

namespace troupe::comm {

// Headers and payloads begin at multiples of this in the stream.
inline constexpr std::size_t kStreamUnitBytes = 64;

struct TcpLinkOptions {
  int peer = 0;                   // number of the process at the other end
  std::string address;            // "10.0.0.7:40112", for errors
  std::string transport = "tcp";  // for ToString()
};

// Makes a link. `socket` is connected, and both ends have authenticated each
// other (comm/connect).
//   kResourceExhausted and others: errors of epoll(7) or fcntl(2).
absl::StatusOr<std::unique_ptr<Link>> MakeTcpLink(
    base::OwnedFd socket, const TcpLinkOptions& options);

// MakeTcpLink() over `stream`, such as TLS, which uses `socket`.
absl::StatusOr<std::unique_ptr<Link>> MakeStreamLink(
    base::OwnedFd socket, std::unique_ptr<ByteStream> stream,
    const TcpLinkOptions& options);

}  // namespace troupe::comm

#endif  // COMM_TCP_TCP_LINK_H_

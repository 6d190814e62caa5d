// The control channel of a link through shared memory: a Unix stream socket
// that carries short messages between the links, file descriptors with them,
// and at last the reason why a link ends.
//
//   ControlSocket control(std::move(connected));
//   if (!control.Send(offer, range.fd)) Withdraw();  // the socket is full
//
//   // At the other end:
//   while (control.Receive() == ControlSocket::Received::kBytes) {
//     while (control.Next() == ControlSocket::Got::kMessage) {
//       Map(control.frame().words[2], control.TakeDescriptor());
//     }
//   }
//
// A message is a frame of type kReservedType with 0 in words[0]; any other
// value there makes it a farewell (comm/farewell.h). The other end is not
// trusted: Next() detects frames that are neither, and too many descriptors.
//
// Threads: any for Send() and Shutdown(), one at a time for the rest. Nothing
// blocks.

#ifndef COMM_SHM_CONTROL_SOCKET_H_
#define COMM_SHM_CONTROL_SOCKET_H_

#include <cstddef>
#include <deque>
#include <utility>

#include "absl/status/status.h"
#include "base/files/owned_fd.h"
#include "comm/link.h"
#include "comm/tcp/frame_reader.h"

namespace troupe::comm {

// Limit on the descriptors that arrive before the frames that they belong to.
inline constexpr std::size_t kDescriptorsMax = 8;

class ControlSocket {
 public:
  enum class Received { kNothing, kBytes, kClosed, kReset };
  enum class Got {
    kNothing,   // more bytes are needed: Receive()
    kMessage,   // frame() is a message, until the next call
    kFarewell,  // the other end has ended the link: farewell()
    kBroken,    // the other end broke the protocol
  };

  // `socket` is a connected Unix stream.
  explicit ControlSocket(base::OwnedFd socket) : socket_(std::move(socket)) {}

  // Returns the descriptor for poll(2): readable if Receive() finds anything.
  int fd() const { return socket_.get(); }

  // Sends a message, and a duplicate of `descriptor` unless that is -1. Returns
  // false if the socket is full or closed.
  bool Send(const Frame& message, int descriptor = -1) const;
  // Sends the reason of the end, unless the socket is full, and closes the
  // connection in both directions: threads that poll it here wake up, too.
  void Shutdown(const absl::Status& why) const;

  // Reads from the socket, by one system call. Call it after kNothing only.
  Received Receive();
  Got Next();
  const Frame& frame() const { return frames_.frame(); }
  // Returns the reason that the other end gave, never ok.
  absl::Status farewell() const;
  // Returns the oldest received descriptor that was not taken yet; an invalid
  // one if there is none.
  base::OwnedFd TakeDescriptor();

 private:
  const base::OwnedFd socket_;
  FrameReader frames_;
  std::deque<base::OwnedFd> descriptors_;  // for messages not handled yet
};

}  // namespace troupe::comm

#endif  // COMM_SHM_CONTROL_SOCKET_H_

// The stream of bytes that a link over a socket reads and writes: the socket
// itself, or TLS over it.
//
//   const std::unique_ptr<ByteStream> stream = MakePlainStream(socket.get());
//   const ssize_t sent = stream->Write(pieces, /*count=*/2);
//   if (sent == -EAGAIN) WaitForRoom();
//
// Nothing blocks. Threads: one reader and one writer at a time.

#ifndef COMM_TCP_BYTE_STREAM_H_
#define COMM_TCP_BYTE_STREAM_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <memory>
#include <string>

namespace troupe::comm {

class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Return the number of bytes that moved; 0 from Read() means the end; a
  // negative value is an error of the system. A short Read() means that no more
  // bytes were available.
  virtual ssize_t Read(iovec* pieces, int count) = 0;
  virtual ssize_t Write(iovec* pieces, int count) = 0;

  // Returns whether Write() took bytes that the socket has not taken; the next
  // Write() continues with them, even one without pieces.
  virtual bool HasOutput() = 0;
  // Returns whether Read() has bytes without reading the socket.
  virtual bool HasInput() = 0;
  // Returns the reason of -EPROTO.
  virtual std::string protocol_error() = 0;
};

// Returns the socket itself as a stream; `socket` stays open as long as that.
std::unique_ptr<ByteStream> MakePlainStream(int socket);

}  // namespace troupe::comm

#endif  // COMM_TCP_BYTE_STREAM_H_

// What a link over a socket reads and writes: the socket itself, or TLS over
// it.
//
//   const std::unique_ptr<ByteStream> stream = MakePlainStream(socket.get());
//   const ssize_t sent = stream->Write(pieces, /*count=*/2);
//   if (sent == -EAGAIN) WaitForRoom();
//
// Nothing blocks. Threads: one that reads beside one that writes.

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

  // The number of bytes that moved; Read: 0 at the end; or an error of the
  // system, negative. A short Read means that there was no more.
  virtual ssize_t Read(iovec* pieces, int count) = 0;
  virtual ssize_t Write(iovec* pieces, int count) = 0;

  // Bytes that Write() took and the socket did not; the next Write() goes on
  // with them, also one without pieces.
  virtual bool HasOutput() = 0;
  // Bytes that Read() would find without asking the socket.
  virtual bool HasInput() = 0;
  // What -EPROTO was about.
  virtual std::string protocol_error() = 0;
};

// The socket itself, which stays open as long.
std::unique_ptr<ByteStream> MakePlainStream(int socket);

}  // namespace troupe::comm

#endif  // COMM_TCP_BYTE_STREAM_H_

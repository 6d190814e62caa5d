#include "comm/tcp/byte_stream.h"

#include <sys/socket.h>

#include <cerrno>

namespace troupe::comm {
namespace {

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(int socket) : socket_(socket) {}

  ssize_t Read(iovec* pieces, int count) override {
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = count;
    const ssize_t got = ::recvmsg(socket_, &message, MSG_DONTWAIT);
    return got < 0 ? -errno : got;
  }
  ssize_t Write(iovec* pieces, int count) override {
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = count;
    const ssize_t sent =
        ::sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? -errno : sent;
  }
  bool HasOutput() override { return false; }
  bool HasInput() override { return false; }
  std::string protocol_error() override { return ""; }

 private:
  const int socket_;
};

}  // namespace

std::unique_ptr<ByteStream> MakePlainStream(int socket) {
  return std::make_unique<PlainStream>(socket);
}

}  // namespace troupe::comm

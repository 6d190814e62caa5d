#include "comm/shm/control_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "comm/farewell.h"

namespace troupe::comm {

bool ControlSocket::Send(const Frame& message, int descriptor) const {
  iovec bytes = {const_cast<Frame*>(&message), sizeof(message)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* const head = CMSG_FIRSTHDR(&header);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof(int));
  }
  return ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof(message));
}

void ControlSocket::Shutdown(const absl::Status& why) const {
  const std::string words = FarewellBytes(why);
  ::send(socket_.get(), words.data(), words.size(),
         MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket_.get(), SHUT_RDWR);
}

ControlSocket::Received ControlSocket::Receive() {
  iovec room[2];
  frames_.Room(room);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kDescriptorsMax)];
  msghdr header{};
  header.msg_iov = room;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t got =
      ::recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) {
    return errno == EAGAIN || errno == EINTR ? Received::kNothing
                                             : Received::kReset;
  }
  for (cmsghdr* head = CMSG_FIRSTHDR(&header); head != nullptr;
       head = CMSG_NXTHDR(&header, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
      descriptors_.emplace_back(descriptor);
    }
  }
  if (got == 0) return Received::kClosed;
  frames_.Filled(got);
  return Received::kBytes;
}

ControlSocket::Got ControlSocket::Next() {
  const FrameReader::Got next =
      frames_.Next([](const Frame&) -> char* { return nullptr; });
  if (next == FrameReader::Got::kMore) return Got::kNothing;
  if (next == FrameReader::Got::kBad || frame().type != kReservedType) {
    return Got::kBroken;
  }
  if (frame().words[0] != 0) return Got::kFarewell;
  return descriptors_.size() > kDescriptorsMax ? Got::kBroken : Got::kMessage;
}

absl::Status ControlSocket::farewell() const {
  return ReadFarewell(frames_.frame(), frames_.payload());
}

base::OwnedFd ControlSocket::TakeDescriptor() {
  if (descriptors_.empty()) return base::OwnedFd();
  base::OwnedFd descriptor = std::move(descriptors_.front());
  descriptors_.pop_front();
  return descriptor;
}

}  // namespace troupe::comm

#include "comm/connect/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::comm {
namespace {

// The last two bytes are the version of the protocol.
constexpr char kMagic[8] = {'T', 'R', 'O', 'U', 'P', 'E', '0', '2'};

enum Code : std::uint64_t {
  kWelcome = 0,
  kOtherGeneration = 1,
  kOtherProcess = 2,
  kRefused = 3,
};

void FillRandom(unsigned char* bytes, std::size_t count) {
  TROUPE_CHECK(::getrandom(bytes, count, 0) == static_cast<ssize_t>(count),
               "so few random bytes always come at once");
}

}  // namespace

Handshake::Handshake(base::OwnedFd socket, const HandshakeParty& me)
    : socket_(std::move(socket)), me_(me), phase_(Phase::kSendsChallenge) {
  std::memcpy(challenge_.magic, kMagic, sizeof(kMagic));
  FillRandom(challenge_.nonce, sizeof(challenge_.nonce));
}

Handshake::Handshake(base::OwnedFd socket, const HandshakeParty& me, int to)
    : socket_(std::move(socket)),
      me_(me),
      peer_(to),
      phase_(Phase::kConnects) {}

Handshake::State Handshake::Step() {
  while (Advance()) {
  }
  switch (phase_) {
    case Phase::kAsks:
      return State::kAsks;
    case Phase::kDone:
      return State::kDone;
    case Phase::kFailed:
      return State::kFailed;
    default:
      return State::kWaits;
  }
}

bool Handshake::Enter(Phase phase) {
  if (phase_ == Phase::kFailed) return false;
  phase_ = phase;
  bytes_moved_ = 0;
  return true;
}

bool Handshake::Advance() {
  switch (phase_) {
    case Phase::kSendsChallenge:
      return SendAll(&challenge_, sizeof(challenge_)) &&
             Enter(Phase::kReadsHello);
    case Phase::kReadsHello:
      if (!ReadAll(&hello_, sizeof(hello_))) return false;
      CheckHello();
      return false;
    case Phase::kSendsReply:
      if (!SendAll(&reply_, sizeof(reply_))) return false;
      if (reply_.code != kWelcome) {
        Fail(absl::PermissionDeniedError("refused"));
        return false;
      }
      return Enter(Phase::kDone);
    case Phase::kConnects:
      return HasConnected() && Enter(Phase::kReadsChallenge);
    case Phase::kReadsChallenge:
      if (!ReadAll(&challenge_, sizeof(challenge_))) return false;
      MakeHello();
      return Enter(Phase::kSendsHello);
    case Phase::kSendsHello:
      return SendAll(&hello_, sizeof(hello_)) && Enter(Phase::kReadsReply);
    case Phase::kReadsReply:
      if (!ReadAll(&reply_, sizeof(reply_))) return false;
      CheckReply();
      return Enter(Phase::kDone);
    default:
      return false;
  }
}

bool Handshake::HasConnected() {
  pollfd entry{socket_.get(), POLLOUT, 0};
  events_ = POLLOUT;
  if (::poll(&entry, 1, 0) <= 0) return false;
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) Fail(absl::ErrnoToStatus(error, "cannot connect"));
  return error == 0;
}

bool Handshake::SendAll(const void* message, std::size_t bytes) {
  events_ = POLLOUT;
  while (bytes_moved_ < bytes) {
    iovec piece{
        const_cast<char*>(static_cast<const char*>(message)) + bytes_moved_,
        bytes - bytes_moved_};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    if (phase_ == Phase::kSendsReply && descriptor_ >= 0) {
      header.msg_control = room;
      header.msg_controllen = sizeof(room);
      cmsghdr* const note = CMSG_FIRSTHDR(&header);
      note->cmsg_level = SOL_SOCKET;
      note->cmsg_type = SCM_RIGHTS;
      note->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(note), &descriptor_, sizeof(int));
    }
    if (!Moved(
            ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT))) {
      return false;
    }
    descriptor_ = -1;
  }
  return true;
}

bool Handshake::ReadAll(void* message, std::size_t bytes) {
  events_ = POLLIN;
  while (bytes_moved_ < bytes) {
    iovec piece{static_cast<char*>(message) + bytes_moved_,
                bytes - bytes_moved_};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    // Only a reply may carry a descriptor: one from a stranger is not accepted.
    if (phase_ == Phase::kReadsReply) {
      header.msg_control = room;
      // Room for one descriptor, not two.
      header.msg_controllen = CMSG_LEN(sizeof(int));
    }
    const ssize_t got =
        ::recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const cmsghdr* const note = got > 0 ? CMSG_FIRSTHDR(&header) : nullptr;
    if (note != nullptr && note->cmsg_level == SOL_SOCKET &&
        note->cmsg_type == SCM_RIGHTS &&
        note->cmsg_len == CMSG_LEN(sizeof(int))) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(note), sizeof(int));
      received_.reset(descriptor);
    }
    if (got == 0) {
      Fail(absl::UnavailableError(
          phase_ == Phase::kReadsReply
              ? "it did not take our proof (is its token another job's?)"
              : "it closed the connection"));
      return false;
    }
    if (!Moved(got)) return false;
  }
  return true;
}

bool Handshake::Moved(long result) {
  if (result < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (errno == EINTR) return true;
    Fail(absl::ErrnoToStatus(errno, "the connection broke"));
    return false;
  }
  bytes_moved_ += result;
  return true;
}

void Handshake::Fail(absl::Status why) {
  error_ = std::move(why);
  phase_ = Phase::kFailed;
}

void Handshake::Prove(bool acceptor, std::uint64_t code,
                      unsigned char proof[32]) const {
  constexpr std::size_t kHelloBytes = offsetof(internal::Hello, proof);
  unsigned char said[1 + sizeof(challenge_) + kHelloBytes + sizeof(code)];
  unsigned char* end = said;
  *end++ = acceptor ? 'A' : 'C';
  end = static_cast<unsigned char*>(
            std::memcpy(end, &challenge_, sizeof(challenge_))) +
        sizeof(challenge_);
  end = static_cast<unsigned char*>(std::memcpy(end, &hello_, kHelloBytes)) +
        kHelloBytes;
  std::memcpy(end, &code, sizeof(code));
  unsigned int bytes = 0;
  const unsigned char* const made = ::HMAC(::EVP_sha256(), me_.token.data(),
                                           static_cast<int>(me_.token.size()),
                                           said, sizeof(said), proof, &bytes);
  TROUPE_CHECK(made != nullptr && bytes == 32, "OpenSSL has SHA-256");
}

void Handshake::MakeHello() {
  if (std::memcmp(challenge_.magic, kMagic, sizeof(kMagic)) != 0) {
    Fail(absl::FailedPreconditionError(
        "what listens there is no Troupe, or another version; start one "
        "version everywhere, and choose a free port"));
    return;
  }
  std::memcpy(hello_.magic, kMagic, sizeof(kMagic));
  hello_.generation = me_.generation;
  hello_.from = static_cast<std::uint32_t>(me_.process);
  hello_.to = static_cast<std::uint32_t>(peer_);
  hello_.processes = static_cast<std::uint32_t>(me_.processes);
  FillRandom(hello_.nonce, sizeof(hello_.nonce));
  Prove(/*acceptor=*/false, kWelcome, hello_.proof);
}

void Handshake::CheckHello() {
  unsigned char proof[32];
  Prove(/*acceptor=*/false, kWelcome, proof);
  if (::CRYPTO_memcmp(proof, hello_.proof, sizeof(proof)) != 0) {
    Fail(absl::UnauthenticatedError("a stranger: its proof is wrong"));
    return;
  }
  peer_ = static_cast<int>(hello_.from);
  const auto process = static_cast<std::uint32_t>(me_.process);
  const auto processes = static_cast<std::uint32_t>(me_.processes);
  if (hello_.generation != me_.generation) {
    reply_.code = kOtherGeneration;
  } else if (hello_.to != process || hello_.processes != processes ||
             hello_.from >= processes || hello_.from <= process) {
    reply_.code = kOtherProcess;
  } else {
    phase_ = Phase::kAsks;
    return;
  }
  Prove(/*acceptor=*/true, reply_.code, reply_.proof);
  Enter(Phase::kSendsReply);
}

void Handshake::Answer(bool accepted, int descriptor) {
  TROUPE_CHECK(phase_ == Phase::kAsks, "an answer follows a question");
  descriptor_ = accepted ? descriptor : -1;
  reply_.code = accepted ? kWelcome : kRefused;
  Prove(/*acceptor=*/true, reply_.code, reply_.proof);
  Enter(Phase::kSendsReply);
}

void Handshake::CheckReply() {
  unsigned char proof[32];
  Prove(/*acceptor=*/true, reply_.code, proof);
  if (::CRYPTO_memcmp(proof, reply_.proof, sizeof(proof)) != 0) {
    Fail(absl::UnauthenticatedError(
        "its proof is wrong: it does not belong to this job"));
  } else if (reply_.code == kOtherGeneration) {
    Fail(absl::AbortedError(absl::StrCat(
        "it runs another generation of the job than ", me_.generation)));
  } else if (reply_.code == kOtherProcess) {
    Fail(absl::FailedPreconditionError(
        "it counts the processes of the job in another way; start all with "
        "one number of processes"));
  } else if (reply_.code != kWelcome) {
    Fail(absl::ResourceExhaustedError(
        "it has no shared memory left; raise the limit of its /dev/shm, or "
        "choose the transport tcp"));
  }
}

}  // namespace troupe::comm

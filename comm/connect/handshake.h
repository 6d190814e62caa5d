// How two processes of a job prove to each other that they belong to it, before
// anything else is read from a connection.
//
//   Handshake accepting(std::move(socket), me);
//   Handshake connecting(std::move(socket), me, /*to=*/0);
//   while (accepting.Step() == Handshake::State::kWaits) {
//     Wait(accepting.fd(), accepting.events());
//   }
//
// Both know the token, 32 secret bytes; neither shows it. All messages have a
// fixed size:
//
//     acceptor                                connector
//     challenge: magic, nonce       ->
//                                   <-        hello: who, to whom, nonce, proof
//     reply: code, proof            ->
//
// A proof is the HMAC-SHA256, by the token, of all that was said before it on
// either side and of which side says it. The acceptor reads nothing out of a
// hello whose proof is wrong, and says nothing to it.
//
// Threads: one at a time. Nothing blocks. Random numbers are the system's.

#ifndef COMM_CONNECT_HANDSHAKE_H_
#define COMM_CONNECT_HANDSHAKE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/owned_fd.h"

namespace troupe::comm {

using JobToken = std::array<unsigned char, 32>;

// Who speaks.
struct HandshakeParty {
  JobToken token{};
  std::uint64_t generation = 0;  // of the job: how often it was restarted
  int process = 0;
  int processes = 1;
};

namespace internal {

struct Challenge {
  char magic[8];
  unsigned char nonce[32];
};
struct Hello {
  char magic[8];
  std::uint64_t generation;
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t processes;
  std::uint32_t unused;
  unsigned char nonce[32];
  unsigned char proof[32];
};
struct Reply {
  std::uint64_t code;
  unsigned char proof[32];
};
static_assert(sizeof(Challenge) == 40 && sizeof(Hello) == 96 &&
              sizeof(Reply) == 40);

}  // namespace internal

class Handshake {
 public:
  enum class State {
    kWaits,  // for events() of fd()
    kAsks,   // acceptor: process peer() has proved itself; Answer() it
    kDone,
    kFailed,  // error() says why
  };

  // The acceptor's end.
  Handshake(base::OwnedFd socket, const HandshakeParty& me);
  // The connector's; `socket` may still be connecting.
  Handshake(base::OwnedFd socket, const HandshakeParty& me, int to);

  // Goes on as far as it can.
  State Step();
  // After kAsks: ok, perhaps with a descriptor that goes along (Unix sockets
  // alone; it may be closed after kDone), or no. Then Step().
  void Answer(bool accepted, int descriptor = -1);

  int fd() const { return socket_.get(); }
  short events() const { return events_; }
  // After kAsks, and for the connector from the beginning.
  int peer() const { return peer_; }
  const absl::Status& error() const { return error_; }

  // After kDone.
  base::OwnedFd TakeSocket() { return std::move(socket_); }
  // What came along with the reply.
  base::OwnedFd TakeDescriptor() { return std::move(received_); }

 private:
  enum class Phase {
    kSendsChallenge,
    kReadsHello,
    kAsks,
    kSendsReply,
    kConnects,
    kReadsChallenge,
    kSendsHello,
    kReadsReply,
    kDone,
    kFailed,
  };

  // One phase; false: it is not at its end.
  bool Advance();
  // As far as `bytes`; true when all have moved.
  bool SendAll(const void* message, std::size_t bytes);
  bool ReadAll(void* message, std::size_t bytes);
  // Moves bytes_moved_ on; false: the call would wait, or failed.
  bool Moved(long result);
  bool HasConnected();
  void Fail(absl::Status why);
  bool Enter(Phase phase);

  void MakeHello();
  void CheckHello();
  void CheckReply();
  // Over the messages so far; `code` is of the reply.
  void Prove(bool acceptor, std::uint64_t code, unsigned char proof[32]) const;

  base::OwnedFd socket_;
  const HandshakeParty me_;
  int peer_ = -1;
  Phase phase_;
  short events_ = 0;
  std::size_t bytes_moved_ = 0;
  int descriptor_ = -1;
  base::OwnedFd received_;
  absl::Status error_;
  internal::Challenge challenge_{};
  internal::Hello hello_{};
  internal::Reply reply_{};
};

}  // namespace troupe::comm

#endif  // COMM_CONNECT_HANDSHAKE_H_

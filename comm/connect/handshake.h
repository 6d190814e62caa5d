// Mutual authentication: two processes of a job prove to each other that they
// belong to it, before anything else is read from a connection.
//
//   Handshake accepting(std::move(socket), me);
//   Handshake connecting(std::move(socket), me, /*to=*/0);
//   while (accepting.Step() == Handshake::State::kWaits) {
//     Wait(accepting.fd(), accepting.events());
//   }
//
// Both have the token, 32 secret bytes; neither sends it. All messages have a
// fixed size:
//
//     acceptor                                connector
//     challenge: magic, nonce       ->
//                                   <-        hello: from, to, nonce, proof
//     reply: code, proof            ->
//
// A proof is the HMAC-SHA256, keyed by the token, of all earlier messages of
// both sides and of the sender's role. The acceptor uses no field of a hello
// whose proof is wrong, and does not reply to it.
//
// Threads: one at a time. Nothing blocks. Random numbers come from the system.

#ifndef COMM_CONNECT_HANDSHAKE_H_
#define COMM_CONNECT_HANDSHAKE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/files/owned_fd.h"

namespace troupe::comm {

using JobToken = std::array<unsigned char, 32>;

// Identity of one side.
struct HandshakeParty {
  JobToken token{};
  std::uint64_t generation = 0;  // number of restarts of the job
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
    kWaits,  // waits for events() of fd()
    kAsks,   // acceptor: peer() has proved its identity; call Answer()
    kDone,
    kFailed,  // see error()
  };

  // Makes the acceptor's end.
  Handshake(base::OwnedFd socket, const HandshakeParty& me);
  // Makes the connector's end; `socket` may still be connecting.
  Handshake(base::OwnedFd socket, const HandshakeParty& me, int to);

  // Advances as far as possible without blocking.
  State Step();
  // Accepts or refuses the peer after kAsks; call Step() next. `descriptor` is
  // sent along if accepted (over Unix sockets alone; it may be closed after
  // kDone).
  void Answer(bool accepted, int descriptor = -1);

  int fd() const { return socket_.get(); }
  short events() const { return events_; }
  // Returns the peer's number; valid after kAsks, for the connector from the
  // start.
  int peer() const { return peer_; }
  const absl::Status& error() const { return error_; }

  // Returns the authenticated connection, after kDone.
  base::OwnedFd TakeSocket() { return std::move(socket_); }
  // Returns the descriptor that the reply carried.
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

  // Advances within one phase; false: the phase is not complete.
  bool Advance();
  // Transfer a message of `bytes`; return true once all of it has moved.
  bool SendAll(const void* message, std::size_t bytes);
  bool ReadAll(void* message, std::size_t bytes);
  // Adds `result` to bytes_moved_; false: the call would block, or failed.
  bool Moved(long result);
  bool HasConnected();
  void Fail(absl::Status why);
  bool Enter(Phase phase);

  void MakeHello();
  void CheckHello();
  void CheckReply();
  // Computes a proof over the messages so far; `code` is the reply's.
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

#include "comm/connect/handshake.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/comm/links/link_test_util.h"

namespace troupe::comm {
namespace {

using State = Handshake::State;

HandshakeParty Party(int process, unsigned char token = 7) {
  HandshakeParty party;
  party.token.fill(token);
  party.generation = 2;
  party.process = process;
  party.processes = 4;
  return party;
}

// Both ends of a handshake, stepped in turn.
struct Ends {
  Ends(const HandshakeParty& acceptor, const HandshakeParty& connector)
      : Ends(MakeSockets(), acceptor, connector) {}
  Ends(SocketPair sockets, const HandshakeParty& acceptor,
       const HandshakeParty& connector)
      : accepting(std::move(sockets.a), acceptor),
        connecting(std::move(sockets.b), connector, /*to=*/1) {}

  // Steps both ends until the acceptor asks, or nothing moves any more.
  void Run() {
    for (int i = 0; i < 4; ++i) {
      accepts = accepting.Step();
      connects = connecting.Step();
      if (accepts == State::kAsks) return;
      if (accepts == State::kFailed) CloseAcceptor();
    }
  }
  void CloseAcceptor() { const base::OwnedFd gone = accepting.TakeSocket(); }

  Handshake accepting;
  Handshake connecting;
  State accepts = State::kWaits;
  State connects = State::kWaits;
};

TEST(HandshakeTest, TwoOfOneJobProveThemselves) {
  Ends ends(Party(1), Party(3));
  ends.Run();
  ASSERT_EQ(ends.accepts, State::kAsks);
  EXPECT_EQ(ends.accepting.peer(), 3);
  ends.accepting.Answer(/*accepted=*/true);
  EXPECT_EQ(ends.accepting.Step(), State::kDone);
  EXPECT_EQ(ends.connecting.Step(), State::kDone);
  EXPECT_FALSE(ends.connecting.TakeDescriptor().valid());
}

TEST(HandshakeTest, ADescriptorGoesAlong) {
  Ends ends(Party(1), Party(3));
  ends.Run();
  const base::OwnedFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ends.accepting.Answer(/*accepted=*/true, null.get());
  EXPECT_EQ(ends.accepting.Step(), State::kDone);
  EXPECT_EQ(ends.connecting.Step(), State::kDone);
  const base::OwnedFd received = ends.connecting.TakeDescriptor();
  ASSERT_TRUE(received.valid());
  EXPECT_EQ(::write(received.get(), "x", 1), 1);
}

TEST(HandshakeTest, AnotherTokenIsAStranger) {
  Ends ends(Party(1), Party(3, /*token=*/8));
  ends.Run();
  EXPECT_EQ(ends.accepts, State::kFailed);
  EXPECT_EQ(ends.accepting.peer(), -1);
  EXPECT_EQ(ends.accepting.error(),
            absl::UnauthenticatedError("a stranger: its proof is wrong"));
  EXPECT_EQ(ends.connects, State::kFailed);
  EXPECT_EQ(ends.connecting.error(),
            absl::UnavailableError("it did not take our proof (is its token "
                                   "another job's?)"));
}

TEST(HandshakeTest, AnotherGenerationIsTurnedAway) {
  HandshakeParty late = Party(3);
  late.generation = 1;
  Ends ends(Party(1), late);
  ends.Run();
  EXPECT_EQ(ends.accepts, State::kFailed);
  EXPECT_EQ(ends.connecting.error(),
            absl::AbortedError("it runs another generation of the job than 1"));
}

TEST(HandshakeTest, NumbersMustFit) {
  HandshakeParty five = Party(3);
  five.processes = 5;
  // In turn: a different number of processes; a connector that should accept
  // instead; two processes of the same number; a connection meant for process
  // 1.
  const HandshakeParty acceptors[] = {Party(1), Party(1), Party(1), Party(2)};
  const HandshakeParty connectors[] = {five, Party(0), Party(1), Party(3)};
  for (int i = 0; i < 4; ++i) {
    Ends ends(acceptors[i], connectors[i]);
    ends.Run();
    EXPECT_EQ(ends.accepts, State::kFailed) << i;
    EXPECT_EQ(ends.connecting.error(),
              absl::FailedPreconditionError(
                  "it counts the processes of the job in another way; start "
                  "all with one number of processes"))
        << i;
  }
}

TEST(HandshakeTest, ARefusalIsHeard) {
  Ends ends(Party(1), Party(3));
  ends.Run();
  ends.accepting.Answer(/*accepted=*/false);
  EXPECT_EQ(ends.accepting.Step(), State::kFailed);
  EXPECT_EQ(ends.connecting.Step(), State::kFailed);
  EXPECT_EQ(
      ends.connecting.error(),
      absl::ResourceExhaustedError(
          "it has no shared memory left; raise the limit of its /dev/shm, "
          "or choose the transport tcp"));
}

// A man in the middle who changes one bit of a message.
class Meddler {
 public:
  explicit Meddler(std::uint64_t seed)
      : seed_(seed), ends_(MeddledEnds(&to_acceptor_, &to_connector_)) {}

  // Passes the three messages on: 40, 96 and 40 bytes. Changes one bit
  // of message `meddled`.
  void Run(int meddled) {
    ends_.accepting.Step();
    Pass(to_acceptor_.get(), to_connector_.get(), 40, meddled == 0);
    ends_.connecting.Step();
    Pass(to_connector_.get(), to_acceptor_.get(), 96, meddled == 1);
    if (ends_.accepting.Step() == State::kAsks) {
      ends_.accepting.Answer(/*accepted=*/true);
      accepted_ = ends_.accepting.Step() == State::kDone;
    }
    Pass(to_acceptor_.get(), to_connector_.get(), 40, meddled == 2);
    connected_ = ends_.connecting.Step() == State::kDone;
  }
  bool accepted() const { return accepted_; }
  bool connected() const { return connected_; }

 private:
  static Ends MeddledEnds(base::OwnedFd* to_acceptor,
                          base::OwnedFd* to_connector) {
    SocketPair left = MakeSockets();
    SocketPair right = MakeSockets();
    *to_acceptor = std::move(left.b);
    *to_connector = std::move(right.b);
    return Ends({std::move(left.a), std::move(right.a)}, Party(1), Party(3));
  }
  void Pass(int from, int to, std::size_t bytes, bool meddle) {
    std::string text(bytes, '\0');
    if (::recv(from, text.data(), bytes, MSG_DONTWAIT) !=
        static_cast<ssize_t>(bytes)) {
      return;
    }
    if (meddle) text[seed_ / 8 % bytes] ^= static_cast<char>(1 << seed_ % 8);
    EXPECT_EQ(::send(to, text.data(), bytes, 0), static_cast<ssize_t>(bytes));
  }

  const std::uint64_t seed_;
  base::OwnedFd to_acceptor_;
  base::OwnedFd to_connector_;
  Ends ends_;
  bool accepted_ = false;
  bool connected_ = false;
};

TEST(HandshakeTest, EveryBitCounts) {
  Meddler honest(0);
  honest.Run(/*meddled=*/-1);
  EXPECT_TRUE(honest.accepted() && honest.connected());
  const int bytes[] = {40, 96, 40};
  for (int message = 0; message < 3; ++message) {
    for (int bit = 0; bit < 8 * bytes[message]; ++bit) {
      Meddler meddler(bit);
      meddler.Run(message);
      EXPECT_EQ(meddler.accepted(), message == 2) << message << " " << bit;
      EXPECT_FALSE(meddler.connected()) << message << " " << bit;
    }
  }
}

TEST(HandshakeTest, NoiseProvesNothing) {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    SocketPair sockets = MakeSockets();
    const std::string noise = Text(seed % 200, seed);
    if (!noise.empty()) {
      ASSERT_GT(::send(sockets.b.get(), noise.data(), noise.size(), 0), 0);
    }
    ASSERT_EQ(::shutdown(sockets.b.get(), SHUT_WR), 0);
    if (seed % 2 == 0) {
      Handshake accepting(std::move(sockets.a), Party(1));
      ASSERT_EQ(accepting.Step(), State::kFailed) << seed;
      // A stranger receives no more than this.
      std::string heard(1000, '\0');
      ASSERT_EQ(::recv(sockets.b.get(), heard.data(), heard.size(), 0), 40);
    } else {
      Handshake connecting(std::move(sockets.a), Party(3), /*to=*/1);
      ASSERT_EQ(connecting.Step(), State::kFailed) << seed;
    }
  }
}

}  // namespace
}  // namespace troupe::comm

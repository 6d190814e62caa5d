#include "tools/bench/collectives/baselines.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/check.h"
#include "base/files/owned_fd.h"
#include "comm/connect/sockets.h"
#include "tools/bench/collectives/turns.h"

namespace troupe::bench {
namespace {

// For each turn, runs `measure(rank, turn)` in a thread per rank, and answers
// with the result of rank 0.
void ServeByThreads(int ranks,
                    absl::FunctionRef<double(int, const Turn&)> measure) {
  Turn turn;
  while (ReadTurn(&turn)) {
    std::vector<std::thread> others;
    for (int rank = 1; rank < ranks; ++rank) {
      others.emplace_back([&, rank] { measure(rank, turn); });
    }
    const double us = measure(0, turn);
    for (std::thread& other : others) other.join();
    Answer(us);
  }
}

struct Neighbours {
  base::OwnedFd next, previous;
};

// Sends all of `out` and receives all of `in`, each as far as its socket
// permits.
void Exchange(const Neighbours& to, const std::vector<char>& out,
              std::vector<char>* in) {
  std::size_t sent = 0;
  std::size_t received = 0;
  while (sent < out.size() || received < in->size()) {
    bool moved = false;
    if (sent < out.size()) {
      const ssize_t n = ::send(to.next.get(), out.data() + sent,
                               out.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n > 0) sent += n;
      moved |= n > 0;
    }
    if (received < in->size()) {
      const ssize_t n = ::recv(to.previous.get(), in->data() + received,
                               in->size() - received, MSG_DONTWAIT);
      TROUPE_CHECK(n != 0, "no neighbour goes before the end");
      if (n > 0) received += n;
      moved |= n > 0;
    }
    if (moved) continue;
    pollfd entries[2] = {
        {sent < out.size() ? to.next.get() : -1, POLLOUT, 0},
        {received < in->size() ? to.previous.get() : -1, POLLIN, 0}};
    ::poll(entries, 2, /*timeout=*/-1);
  }
}

// Connects `next` of rank i to `previous` of rank i + 1.
absl::StatusOr<std::vector<Neighbours>> ConnectRing(int ranks) {
  std::vector<Neighbours> ring(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    TROUPE_ASSIGN_OR_RETURN(const comm::Listener listener,
                            comm::ListenTcp("127.0.0.1"));
    TROUPE_ASSIGN_OR_RETURN(ring[rank].next,
                            comm::ConnectTcp(listener.name, /*attempt=*/0));
    pollfd entry = {listener.socket.get(), POLLIN, 0};
    ::poll(&entry, 1, /*timeout=*/10000);
    base::OwnedFd accepted = comm::Accept(listener);
    if (!accepted.valid()) {
      return absl::UnavailableError(
          "ListenTcp() got no connection within 10 s; check the loopback "
          "interface");
    }
    ring[(rank + 1) % ranks].previous = std::move(accepted);
    const int on = 1;
    ::setsockopt(ring[rank].next.get(), IPPROTO_TCP, TCP_NODELAY, &on,
                 sizeof(on));
  }
  return ring;
}

}  // namespace

void RunMemcpy(int ranks) {
  ServeByThreads(ranks, [](int, const Turn& turn) {
    std::vector<char> from(turn.bytes, 1);
    std::vector<char> to(turn.bytes);
    return MedianOfBlocks(turn, [&] {
      std::memcpy(to.data(), from.data(), from.size());
      // The compiler must not remove a copy whose result is never read.
      asm volatile("" : : "r"(to.data()) : "memory");
    });
  });
}

absl::Status RunSockets(int ranks) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Neighbours> ring,
                          ConnectRing(ranks));
  ServeByThreads(ranks, [&](int rank, const Turn& turn) {
    const std::size_t bytes = 2 * turn.bytes * (ranks - 1) / ranks;
    const std::vector<char> out(bytes, 1);
    std::vector<char> in(bytes);
    return MedianOfBlocks(turn, [&] { Exchange(ring[rank], out, &in); });
  });
  return absl::OkStatus();
}

}  // namespace troupe::bench

// Four functions of libcaf_openssl 0.17.6, mended: the linker takes these for
// the library's own, whose calls all go through its symbol table.
//
// OpenSSL keeps the errors of a thread in a queue, and SSL_get_error() takes
// any that lies there for the one of the call before it. The library's thread
// serves all connections and never empties the queue: whoever speaks garbage to
// the port ends the connection of another, who has done nothing.
//
// Both ends have something to say as soon as they are connected. While a
// handshake waits for the other end, the socket can be written to, so the
// library tries again and again, at the cost of a core: processes that call
// keep process 0, which has to answer them, from running. So tries leave a
// pause. A stranger may say nothing for as long as he likes, and a process 0
// that stands still says nothing either; even the end of the program would wait
// for them. So a handshake has a time limit, at both ends.
//
// What is written may also lie elsewhere when a write is tried again, which
// OpenSSL refuses unless it is told.

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <cstdint>

#include "actors/caf/caf.h"
#include "caf/openssl/session.hpp"

namespace caf::openssl {
namespace {

// A write to a closed connection is an error, not a signal, here and whatever
// the program does with the signal elsewhere.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~NoSigpipe() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const timespec no_time = {};
    sigtimedwait(&sigpipe_, nullptr, &no_time);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t sigpipe_;
  sigset_t before_;
};

// The time that whoever accepts gives a handshake; a token of the data plane
// has as long. Whoever calls has more patience: the other end may be busy.
constexpr std::int64_t kAcceptNanos = 2'000'000'000;
constexpr std::int64_t kConnectNanos = 5'000'000'000;
// How long to wait for a silent peer, and how long not to, in turns.
constexpr int kPauseMillis = 1;
constexpr std::int64_t kBetweenPausesNanos = 200'000;

std::int64_t MonotonicNanos() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Where a connection keeps the time at which its handshake is late.
int DeadlineIndex() {
  static const int index =
      SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

void SetDeadline(SSL* ssl, std::int64_t nanos) {
  SSL_set_ex_data(ssl, DeadlineIndex(),
                  reinterpret_cast<void*>(MonotonicNanos() + nanos));
}

bool IsLate(const SSL* ssl) {
  return MonotonicNanos() >=
         reinterpret_cast<std::int64_t>(SSL_get_ex_data(ssl, DeadlineIndex()));
}

// Called by the thread that serves all connections, which is not held up: it
// has been at work since the last pause, and goes on when `fd` has something.
void PauseForPeer(int fd) {
  thread_local std::int64_t last_pause = 0;
  if (MonotonicNanos() - last_pause < kBetweenPausesNanos) return;
  pollfd entry = {fd, POLLIN, 0};
  poll(&entry, 1, kPauseMillis);
  last_pause = MonotonicNanos();
}

int Write(SSL* ssl, void* bytes, int count) {
  return SSL_write(ssl, bytes, count);
}

// Begins a handshake; whether it goes on, or is done.
bool Begin(SSL* ssl, int fd, int (*handshake)(SSL*), bool* goes_on) {
  const NoSigpipe no_sigpipe;
  ERR_clear_error();
  SSL_set_mode(
      ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_set_fd(ssl, fd);
  const int result = handshake(ssl);
  *goes_on = result != 1;
  if (result == 1) return true;
  const int error = SSL_get_error(ssl, result);
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

}  // namespace

rw_state session::read_some(size_t& result, native_socket, void* bytes,
                            size_t count) {
  ERR_clear_error();
  return do_some(SSL_read, result, bytes, count, "read_some");
}

rw_state session::write_some(size_t& result, native_socket fd,
                             const void* bytes, size_t count) {
  ERR_clear_error();
  const bool shakes_hands = accepting_ || connecting_;
  if (shakes_hands && IsLate(ssl_)) return rw_state::failure;
  const rw_state state =
      do_some(Write, result, const_cast<void*>(bytes), count, "write_some");
  if (shakes_hands && state != rw_state::failure) PauseForPeer(fd);
  return state;
}

bool session::try_connect(native_socket fd) {
  SSL_set_connect_state(ssl_);
  SetDeadline(ssl_, kConnectNanos);
  return Begin(ssl_, fd, SSL_connect, &connecting_);
}

bool session::try_accept(native_socket fd) {
  SSL_set_accept_state(ssl_);
  SetDeadline(ssl_, kAcceptNanos);
  return Begin(ssl_, fd, SSL_accept, &accepting_);
}

}  // namespace caf::openssl

// Corrected versions of four functions of libcaf_openssl 0.17.6. The linker
// prefers them to the library's own, which are called through its symbol table.
//
// OpenSSL keeps a queue of errors for each thread, and SSL_get_error() blames
// an error left in it on the last call. The library serves all connections in
// one thread and never clears the queue, so that garbage sent to the port by
// one peer ends the connection of another. Here the queue is cleared.
//
// Both ends have data to send as soon as they are connected. While a handshake
// waits for the other end, the socket stays writable, so the library retries in
// a busy loop, at the cost of a core: connecting processes keep process 0,
// which must answer them, from running. Here retries pause in between. A
// stranger may stay silent for as long as it likes, as may a process 0 that is
// stopped, and even the end of the program would wait for them. Here a
// handshake has a time limit, at both ends.
//
// A write may be retried with a buffer at another address, which OpenSSL
// refuses unless SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER is set.

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

// Blocks SIGPIPE in its scope, so that a write to a closed connection is an
// error and no signal, however the program handles the signal elsewhere.
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

// Limits on the time of a handshake. The accepting end uses the same as for a
// token of the data plane; the connecting end waits longer, since the other may
// be busy.
constexpr std::int64_t kAcceptNanos = 2'000'000'000;
constexpr std::int64_t kConnectNanos = 5'000'000'000;
// Longest pause for a silent peer, and time without pauses after one.
constexpr int kPauseMillis = 1;
constexpr std::int64_t kBetweenPausesNanos = 200'000;

std::int64_t MonotonicNanos() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Returns the index of the SSL ex-data that holds a handshake's deadline.
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

// Waits until `fd` can be read, for at most kPauseMillis. The calling thread
// serves all connections, so this returns at once unless it has worked for
// kBetweenPausesNanos since the last pause.
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

// Begins a handshake. Returns false if it has failed; else sets `*goes_on` to
// whether it is still incomplete.
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

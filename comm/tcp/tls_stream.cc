#include "comm/tcp/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::comm {
namespace {

// Number of bytes that are encrypted, or written to the socket, at a time.
constexpr std::size_t kPieceBytes = 64 << 10;

std::string ErrorText() {
  std::string text = "no reason given";
  // The first error is the cause.
  const unsigned long first = ::ERR_get_error();
  if (ERR_SYSTEM_ERROR(first)) {
    text = std::generic_category().message(ERR_GET_REASON(first));
  } else if (first != 0) {
    const char* const reason = ::ERR_reason_error_string(first);
    if (reason != nullptr) text = reason;
  }
  ::ERR_clear_error();
  return text;
}

absl::Status BadFile(const std::string& what, const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(
      "cannot use ", what, " ", path, ": ", ErrorText(),
      "; make the files anew with `trainer certs`, or correct the path"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<TlsContext>> MakeTlsContext(
    const TlsFiles& files) {
  std::shared_ptr<TlsContext> context(::SSL_CTX_new(::TLS_method()),
                                      &::SSL_CTX_free);
  TROUPE_CHECK(context != nullptr, "OpenSSL has TLS");
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  ::SSL_CTX_set_verify(context.get(),
                       SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       nullptr);
  ::SSL_CTX_set_num_tickets(context.get(), 0);
  ::SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  if (::SSL_CTX_load_verify_locations(context.get(), files.authority.c_str(),
                                      nullptr) != 1) {
    return BadFile("the authority", files.authority);
  }
  if (::SSL_CTX_use_certificate_chain_file(context.get(),
                                           files.certificate.c_str()) != 1) {
    return BadFile("the certificate", files.certificate);
  }
  if (::SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(),
                                    SSL_FILETYPE_PEM) != 1 ||
      ::SSL_CTX_check_private_key(context.get()) != 1) {
    return BadFile("the key", files.key);
  }
  return context;
}

// TLS runs over memory buffers: OpenSSL's own socket BIOs raise SIGPIPE.
TlsStream::TlsStream(std::shared_ptr<TlsContext> context, int socket,
                     bool accepts)
    : context_(std::move(context)),
      socket_(socket),
      ssl_(::SSL_new(context_.get())) {
  TROUPE_CHECK(ssl_ != nullptr, "there is memory for a TLS connection");
  absl::MutexLock lock(&mutex_);
  ::SSL_set_bio(ssl_, ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem()));
  if (accepts) {
    ::SSL_set_accept_state(ssl_);
  } else {
    ::SSL_set_connect_state(ssl_);
  }
}

TlsStream::~TlsStream() { ::SSL_free(ssl_); }

TlsStream::State TlsStream::Handshake() {
  absl::MutexLock lock(&mutex_);
  for (;;) {
    ::ERR_clear_error();
    const int result = ::SSL_do_handshake(ssl_);
    const int wants = ::SSL_get_error(ssl_, result);
    const std::string text = result == 1 ? "" : TakeErrorText();
    const int drained = Drain();  // sends alerts, too
    if (result != 1 && wants != SSL_ERROR_WANT_READ) {
      error_ = absl::UnauthenticatedError(absl::StrCat("TLS: ", text));
      return State::kFailed;
    }
    events_ = drained == -EAGAIN ? POLLOUT : POLLIN;
    if (drained == -EAGAIN) return State::kWaits;
    if (drained == 0 && result == 1) return State::kDone;
    const ssize_t filled = drained == 0 ? Fill() : drained;
    if (filled == -EAGAIN) return State::kWaits;
    if (filled > 0) continue;
    error_ = absl::UnavailableError(
        filled == 0 ? "it closed the connection during the TLS handshake"
                    : "the connection broke during the TLS handshake");
    return State::kFailed;
  }
}

int TlsStream::Drain() {
  for (;;) {
    if (out_.empty()) {
      BIO* const ready = ::SSL_get_wbio(ssl_);
      out_.resize(std::min(::BIO_ctrl_pending(ready), kPieceBytes));
      if (out_.empty()) return 0;
      ::BIO_read(ready, out_.data(), static_cast<int>(out_.size()));
    }
    const ssize_t sent =
        ::send(socket_, out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EINTR) return -errno;
    if (sent > 0) out_.erase(0, sent);
  }
}

ssize_t TlsStream::Fill() {
  char bytes[16 << 10];
  const ssize_t got = ::recv(socket_, bytes, sizeof(bytes), MSG_DONTWAIT);
  if (got > 0) ::BIO_write(::SSL_get_rbio(ssl_), bytes, static_cast<int>(got));
  return got < 0 ? -errno : got;
}

ssize_t TlsStream::Write(iovec* pieces, int count) {
  absl::MutexLock lock(&mutex_);
  int drained = Drain();
  if (drained != 0) return drained;
  ssize_t taken = 0;
  std::string joined;  // pieces that share a TLS record
  for (int i = 0; i < count; ++i) {
    const char* const base = static_cast<const char*>(pieces[i].iov_base);
    for (std::size_t at = 0; at < pieces[i].iov_len;) {
      const std::size_t here =
          std::min(pieces[i].iov_len - at, kPieceBytes - joined.size());
      joined.append(base + at, here);
      at += here;
      const bool last = i + 1 == count && at == pieces[i].iov_len;
      if (joined.size() < kPieceBytes && !last) continue;
      ::ERR_clear_error();
      if (::SSL_write(ssl_, joined.data(), static_cast<int>(joined.size())) <=
          0) {
        protocol_error_ = TakeErrorText();
        return -EPROTO;
      }
      taken += static_cast<ssize_t>(joined.size());
      joined.clear();
      drained = Drain();
      // Encrypted bytes will be sent, even if the socket is full now.
      if (drained != 0) return drained == -EAGAIN ? taken : drained;
    }
  }
  return taken;
}

ssize_t TlsStream::Read(iovec* pieces, int count) {
  absl::MutexLock lock(&mutex_);
  ssize_t total = 0;
  for (int i = 0; i < count; ++i) {
    for (std::size_t at = 0; at < pieces[i].iov_len;) {
      ::ERR_clear_error();
      const int got =
          ::SSL_read(ssl_, static_cast<char*>(pieces[i].iov_base) + at,
                     static_cast<int>(pieces[i].iov_len - at));
      if (got > 0) {
        at += got;
        total += got;
        continue;
      }
      const int wants = ::SSL_get_error(ssl_, got);
      if (wants == SSL_ERROR_WANT_READ) {
        const ssize_t filled = Fill();
        if (filled > 0) continue;
        // The next call returns the end or the error again.
        return total > 0 ? total : filled;
      }
      if (total > 0) return total;
      if (wants == SSL_ERROR_ZERO_RETURN) return 0;
      protocol_error_ = TakeErrorText();
      return -EPROTO;
    }
  }
  return total;
}

bool TlsStream::HasOutput() {
  absl::MutexLock lock(&mutex_);
  return !out_.empty() || ::BIO_ctrl_pending(::SSL_get_wbio(ssl_)) > 0;
}

bool TlsStream::HasInput() {
  absl::MutexLock lock(&mutex_);
  return ::SSL_has_pending(ssl_) != 0 ||
         ::BIO_ctrl_pending(::SSL_get_rbio(ssl_)) > 0;
}

std::string TlsStream::protocol_error() {
  absl::MutexLock lock(&mutex_);
  return protocol_error_;
}

std::string TlsStream::TakeErrorText() {
  const long verified = ::SSL_get_verify_result(ssl_);
  if (verified == X509_V_OK) return ErrorText();
  ::ERR_clear_error();
  return absl::StrCat("its certificate is not accepted: ",
                      ::X509_verify_cert_error_string(verified));
}

}  // namespace troupe::comm

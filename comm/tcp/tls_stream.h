// TLS 1.3 over a socket, with certificates on both sides.
//
//   const TlsFiles files = {"ca.pem", "node.pem", "node.key"};
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<TlsContext> context,
//                           MakeTlsContext(files));
//   TlsStream stream(context, socket.get(), /*accepts=*/true);
//   while (stream.Handshake() == TlsStream::State::kWaits) {
//     Wait(socket.get(), stream.events());
//   }
//
// Each end accepts every certificate of the one authority. Names in
// certificates are not compared with addresses, since the token has
// authenticated the peers before (comm/connect/handshake.h).
//
// Threads: one reader and one writer at a time; they exclude each other.

#ifndef COMM_TCP_TLS_STREAM_H_
#define COMM_TCP_TLS_STREAM_H_

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/tls/certificates.h"
#include "comm/tcp/byte_stream.h"

namespace troupe::comm {

using TlsFiles = base::tls::CertificateFiles;

using TlsContext = SSL_CTX;

// Makes the context for both ends.
//   kInvalidArgument: names the file that cannot be used.
absl::StatusOr<std::shared_ptr<TlsContext>> MakeTlsContext(
    const TlsFiles& files);

class TlsStream : public ByteStream {
 public:
  enum class State { kWaits, kDone, kFailed };

  // `socket` is non-blocking, and stays open as long as the stream.
  TlsStream(std::shared_ptr<TlsContext> context, int socket, bool accepts);
  ~TlsStream() override;

  // Advances the handshake, before all other calls, until kDone.
  State Handshake() ABSL_LOCKS_EXCLUDED(mutex_);
  short events() const { return events_; }
  const absl::Status& error() const { return error_; }

  ssize_t Read(iovec* pieces, int count) override ABSL_LOCKS_EXCLUDED(mutex_);
  ssize_t Write(iovec* pieces, int count) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasOutput() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasInput() override ABSL_LOCKS_EXCLUDED(mutex_);
  std::string protocol_error() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Writes encrypted bytes to the socket: 0 when all are written, or a negative
  // error.
  int Drain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads encrypted bytes from the socket: their number, 0 at the end, or an
  // error.
  ssize_t Fill() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string TakeErrorText() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<TlsContext> context_;
  const int socket_;
  absl::Mutex mutex_;
  SSL* const ssl_ ABSL_PT_GUARDED_BY(mutex_);
  // Bytes that the socket did not take.
  std::string out_ ABSL_GUARDED_BY(mutex_);
  std::string protocol_error_ ABSL_GUARDED_BY(mutex_);
  short events_ = 0;
  absl::Status error_;
};

}  // namespace troupe::comm

#endif  // COMM_TCP_TLS_STREAM_H_

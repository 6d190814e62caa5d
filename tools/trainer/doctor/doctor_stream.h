// A connection between two doctors: TLS with the certificates of both, and a
// deadline for every call.
//
//   TROUPE_ASSIGN_OR_RETURN(base::OwnedFd socket,
//                           ReachDoctor({"n2", 29400}, deadline));
//   DoctorStream stream(std::move(socket), context, /*accepts=*/false);
//   stream.set_deadline(deadline);
//   TROUPE_RETURN_IF_ERROR(stream.Handshake());
//   TROUPE_RETURN_IF_ERROR(stream.WriteText("n3:29400"));
//
// Threads: each call blocks its thread. One call at a time.

#ifndef TOOLS_TRAINER_DOCTOR_DOCTOR_STREAM_H_
#define TOOLS_TRAINER_DOCTOR_DOCTOR_STREAM_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/files/owned_fd.h"
#include "base/host_port.h"
#include "comm/tcp/tls_stream.h"

namespace troupe::tools {

// Limit on a text, in bytes.
inline constexpr std::size_t kDoctorTextBytesMax = 64 << 10;

// Returns a socket that is connected to `peer`.
//   kFailedPrecondition: the host answers, but nothing listens at that port.
//   kUnavailable: the host cannot be reached. kDeadlineExceeded: no answer.
absl::StatusOr<base::OwnedFd> ReachDoctor(const base::HostPort& peer,
                                          absl::Time deadline);

class DoctorStream {
 public:
  // Every call ends with kCancelled once `stop` (a descriptor; -1: none) is
  // readable.
  DoctorStream(base::OwnedFd socket, std::shared_ptr<comm::TlsContext> context,
               bool accepts, int stop = -1);

  // Sets the deadline of all further calls.
  void set_deadline(absl::Time deadline) { deadline_ = deadline; }

  // Errors of all four: kUnauthenticated: TLS failed. kUnavailable: the
  // connection was lost. kDeadlineExceeded.
  absl::Status Handshake();
  absl::Status Read(void* data, std::size_t size);
  absl::Status Write(const void* data, std::size_t size);
  // Writes the length of the text and the text. kInvalidArgument: too long.
  absl::Status WriteText(absl::string_view text);
  absl::StatusOr<std::string> ReadText();

 private:
  absl::Status Move(char* data, std::size_t size, bool reads);
  absl::Status OrWait(ssize_t error, short events);
  absl::Status Wait(short events);

  const base::OwnedFd socket_;
  const int stop_;
  comm::TlsStream stream_;
  absl::Time deadline_ = absl::InfinitePast();
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_DOCTOR_DOCTOR_STREAM_H_

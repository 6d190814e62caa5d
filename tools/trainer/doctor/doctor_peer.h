// Doctors on several hosts. Each answers requests of others, so that one of
// them can examine all hosts and the connections between every two.
//
//   TROUPE_ASSIGN_OR_RETURN(base::OwnedFd socket, ListenAt(29400));
//   TROUPE_ASSIGN_OR_RETURN(
//       const std::unique_ptr<DoctorDesk> desk,
//       DoctorDesk::Open(std::move(socket), own, Version()));
//
//   TROUPE_ASSIGN_OR_RETURN(
//       const std::unique_ptr<DoctorPeer> peer,
//       DoctorPeer::Call(base::HostPort{"n2", 29400}, own, absl::Seconds(10)));
//   absl::StatusOr<PeerFacts> here_to_n2 = peer->Measure();
//   absl::StatusOr<PeerFacts> n2_to_n3 =
//       peer->MeasureTo(base::HostPort{"n3", 29400});
//
// Connections use TLS with the certificates of both sides. A client has two
// seconds to present its certificate, and nothing is read from it before. A
// request has fifteen seconds.
//
//     question: kind, bytes         ->       kAbout: version and time
//     (kBandwidth: so many bytes)            kEcho, kBandwidth: one byte
//     (kMachine)                             a text: its findings
//     (kMeasure: a text, host:port)          facts, or a status and a text
//
// Threads: each call blocks its thread. One call at a time for a peer.

#ifndef TOOLS_TRAINER_DOCTOR_DOCTOR_PEER_H_
#define TOOLS_TRAINER_DOCTOR_DOCTOR_PEER_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/owned_fd.h"
#include "base/host_port.h"
#include "base/tls/certificates.h"
#include "tools/trainer/doctor/doctor_checks.h"
#include "tools/trainer/doctor/doctor_stream.h"

namespace troupe::tools {

// A doctor on another host.
class DoctorPeer {
 public:
  // Connects to `peer`. `timeout` limits the call and each later request.
  //   kFailedPrecondition: the host answers, but nothing listens at the port.
  //   kUnavailable: the host cannot be reached. kUnauthenticated: TLS failed.
  //   kDeadlineExceeded.
  static absl::StatusOr<std::unique_ptr<DoctorPeer>> Call(
      const base::HostPort& peer, const base::tls::CertificateFiles& own,
      absl::Duration timeout);

  // Measures its version and clock, and the connection from here to it.
  absl::StatusOr<PeerFacts> Measure();
  // Returns its findings on its machine.
  absl::StatusOr<std::vector<Finding>> Machine();
  // The same as Measure(), from that doctor to `other`, which that host
  // resolves.
  absl::StatusOr<PeerFacts> MeasureTo(const base::HostPort& other);

 private:
  DoctorPeer(std::string name, absl::Duration timeout,
             std::unique_ptr<DoctorStream> stream)
      : name_(std::move(name)), timeout_(timeout), stream_(std::move(stream)) {}

  absl::StatusOr<PeerFacts> TryMeasure();
  absl::StatusOr<PeerFacts> TryMeasureTo(const base::HostPort& other);

  const std::string name_;
  const absl::Duration timeout_;
  const std::unique_ptr<DoctorStream> stream_;
};

// Connects and measures once.
absl::StatusOr<PeerFacts> AskDoctor(const base::HostPort& peer,
                                    const base::tls::CertificateFiles& own,
                                    absl::Duration timeout);

// A server that answers the requests of other doctors.
class DoctorDesk {
 public:
  // Starts to answer connections to `listener`, a listening socket.
  //   kInvalidArgument: the certificates cannot be used.
  static absl::StatusOr<std::unique_ptr<DoctorDesk>> Open(
      base::OwnedFd listener, const base::tls::CertificateFiles& own,
      const std::string& version);
  // Aborts requests in progress.
  ~DoctorDesk();

 private:
  DoctorDesk(base::OwnedFd listener, base::OwnedFd stop,
             const base::tls::CertificateFiles& own, std::string version,
             std::shared_ptr<comm::TlsContext> context);

  // Body of each thread.
  void AnswerAll();
  absl::Status AnswerOne(DoctorStream& stream);
  absl::Status AnswerMeasure(DoctorStream& stream);

  const base::OwnedFd listener_;
  const base::OwnedFd stop_;
  const base::tls::CertificateFiles own_;
  const std::string version_;
  const std::shared_ptr<comm::TlsContext> context_;
  std::vector<std::thread> threads_;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_DOCTOR_DOCTOR_PEER_H_

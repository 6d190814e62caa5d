#include "tools/trainer/doctor/doctor_peer.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/field_error.h"
#include "tools/trainer/doctor/doctor_machine.h"

namespace troupe::tools {
namespace {

constexpr absl::Duration kStrangerTimeout = absl::Seconds(2);
constexpr absl::Duration kQuestionTimeout = absl::Seconds(15);
// Time limit of a measurement that a doctor makes at the request of another.
constexpr absl::Duration kErrandTimeout = absl::Seconds(10);
constexpr int kTrips = 21;
constexpr std::uint64_t kProbeBytes = 8 << 20;
constexpr int kProbes = 3;
constexpr absl::Duration kProbesTime = absl::Milliseconds(500);
constexpr std::size_t kPieceBytes = 64 << 10;
// Number of doctors that are answered at a time; further ones wait. A kMeasure
// request also takes a thread of the doctor that is measured.
constexpr int kThreads = 8;

enum Kind : std::uint64_t {
  kAbout = 1,
  kEcho = 2,
  kBandwidth = 3,
  kMachine = 4,
  kMeasure = 5,
};
struct Question {
  std::uint64_t kind;
  std::uint64_t bytes;
};
struct About {
  std::int64_t unix_nanos;
  char version[56];
};
// PeerFacts or an error code, as sent; a text follows: the version or the
// error.
struct Measured {
  std::int64_t code;
  std::int64_t skew_nanos;
  std::int64_t trip_nanos;
  std::int64_t bytes_per_second;
};

absl::Status Ask(DoctorStream& stream, Kind kind, std::uint64_t bytes = 0) {
  const Question question = {kind, bytes};
  return stream.Write(&question, sizeof(question));
}

// Measures the time from the first byte of a request to the last of its answer.
absl::StatusOr<absl::Duration> Trip(DoctorStream& stream, Kind kind,
                                    std::uint64_t bytes) {
  const std::vector<char> piece(kPieceBytes);
  const absl::Time begin = absl::Now();
  TROUPE_RETURN_IF_ERROR(Ask(stream, kind, bytes));
  for (std::uint64_t left = bytes; left > 0;) {
    const std::size_t size = std::min<std::uint64_t>(left, kPieceBytes);
    TROUPE_RETURN_IF_ERROR(stream.Write(piece.data(), size));
    left -= size;
  }
  char answer = 0;
  TROUPE_RETURN_IF_ERROR(stream.Read(&answer, 1));
  return absl::Now() - begin;
}

absl::Status AskAbout(DoctorStream& stream, PeerFacts* facts) {
  About about = {};
  const absl::Time begin = absl::Now();
  TROUPE_RETURN_IF_ERROR(Ask(stream, kAbout));
  TROUPE_RETURN_IF_ERROR(stream.Read(&about, sizeof(about)));
  const absl::Time middle = begin + (absl::Now() - begin) / 2;
  about.version[sizeof(about.version) - 1] = '\0';
  facts->version = about.version;
  facts->clock_skew = absl::FromUnixNanos(about.unix_nanos) - middle;
  return absl::OkStatus();
}

absl::Status AnswerAbout(DoctorStream& stream, const std::string& version) {
  About about = {};
  about.unix_nanos = absl::GetCurrentTimeNanos();
  version.copy(about.version, sizeof(about.version) - 1);
  return stream.Write(&about, sizeof(about));
}

absl::Status AnswerTrip(DoctorStream& stream, std::uint64_t bytes) {
  if (bytes > kProbeBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a trip of ", bytes, " bytes; must be at most ", kProbeBytes));
  }
  std::vector<char> piece(kPieceBytes);
  for (std::uint64_t left = bytes; left > 0;) {
    const std::size_t size = std::min<std::uint64_t>(left, kPieceBytes);
    TROUPE_RETURN_IF_ERROR(stream.Read(piece.data(), size));
    left -= size;
  }
  return stream.Write("", 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DoctorPeer>> DoctorPeer::Call(
    const base::HostPort& peer, const base::tls::CertificateFiles& own,
    absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  const auto named = [&](const absl::Status& status) {
    return base::WithMessage(
        status, absl::StrCat(peer.ToString(), ": ", status.message()));
  };
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<comm::TlsContext> context,
                          comm::MakeTlsContext(own));
  absl::StatusOr<base::OwnedFd> socket = ReachDoctor(peer, deadline);
  if (!socket.ok()) return named(socket.status());
  auto stream = std::make_unique<DoctorStream>(
      *std::move(socket), std::move(context), /*accepts=*/false);
  stream->set_deadline(deadline);
  const absl::Status shaken = stream->Handshake();
  if (!shaken.ok()) return named(shaken);
  return std::unique_ptr<DoctorPeer>(
      new DoctorPeer(peer.ToString(), timeout, std::move(stream)));
}

absl::StatusOr<PeerFacts> DoctorPeer::Measure() {
  stream_->set_deadline(absl::Now() + timeout_);
  absl::StatusOr<PeerFacts> facts = TryMeasure();
  if (facts.ok()) return facts;
  return base::WithMessage(facts.status(),
                           absl::StrCat(name_, ": ", facts.status().message()));
}

absl::StatusOr<PeerFacts> DoctorPeer::TryMeasure() {
  PeerFacts facts;
  std::vector<absl::Duration> trips;
  for (int i = 0; i < kTrips; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const absl::Duration trip,
                            Trip(*stream_, kEcho, 0));
    trips.push_back(trip);
  }
  std::nth_element(trips.begin(), trips.begin() + kTrips / 2, trips.end());
  facts.round_trip = trips[kTrips / 2];
  // Comes after those, so that the connection is warm.
  TROUPE_RETURN_IF_ERROR(AskAbout(*stream_, &facts));
  // Takes the best of several probes, unless they take long, since other
  // programs use network and machines, too.
  absl::Duration best = absl::InfiniteDuration(), all;
  for (int i = 0; i < kProbes && all < kProbesTime; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const absl::Duration each,
                            Trip(*stream_, kBandwidth, kProbeBytes));
    best = std::min(best, each);
    all += each;
  }
  facts.bytes_per_second =
      static_cast<double>(kProbeBytes) / absl::ToDoubleSeconds(best);
  return facts;
}

absl::StatusOr<std::vector<Finding>> DoctorPeer::Machine() {
  stream_->set_deadline(absl::Now() + timeout_);
  TROUPE_RETURN_IF_ERROR(Ask(*stream_, kMachine));
  TROUPE_ASSIGN_OR_RETURN(const std::string text, stream_->ReadText());
  return ParseFindings(text);
}

absl::StatusOr<PeerFacts> DoctorPeer::MeasureTo(const base::HostPort& other) {
  stream_->set_deadline(absl::Now() + kErrandTimeout + timeout_);
  return TryMeasureTo(other);
}

absl::StatusOr<PeerFacts> DoctorPeer::TryMeasureTo(
    const base::HostPort& other) {
  TROUPE_RETURN_IF_ERROR(Ask(*stream_, kMeasure));
  TROUPE_RETURN_IF_ERROR(stream_->WriteText(other.ToString()));
  Measured measured = {};
  TROUPE_RETURN_IF_ERROR(stream_->Read(&measured, sizeof(measured)));
  TROUPE_ASSIGN_OR_RETURN(const std::string text, stream_->ReadText());
  if (measured.code != 0) {
    return absl::Status(static_cast<absl::StatusCode>(measured.code), text);
  }
  PeerFacts facts;
  facts.version = text;
  facts.clock_skew = absl::Nanoseconds(measured.skew_nanos);
  facts.round_trip = absl::Nanoseconds(measured.trip_nanos);
  facts.bytes_per_second = static_cast<double>(measured.bytes_per_second);
  return facts;
}

absl::StatusOr<std::unique_ptr<DoctorDesk>> DoctorDesk::Open(
    base::OwnedFd listener, const base::tls::CertificateFiles& own,
    const std::string& version) {
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<comm::TlsContext> context,
                          comm::MakeTlsContext(own));
  base::OwnedFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid()) return absl::ErrnoToStatus(errno, "eventfd");
  std::unique_ptr<DoctorDesk> desk(new DoctorDesk(
      std::move(listener), std::move(stop), own, version, std::move(context)));
  for (int i = 0; i < kThreads; ++i) {
    desk->threads_.emplace_back([desk = desk.get()] { desk->AnswerAll(); });
  }
  return desk;
}

DoctorDesk::DoctorDesk(base::OwnedFd listener, base::OwnedFd stop,
                       const base::tls::CertificateFiles& own,
                       std::string version,
                       std::shared_ptr<comm::TlsContext> context)
    : listener_(std::move(listener)),
      stop_(std::move(stop)),
      own_(own),
      version_(std::move(version)),
      context_(std::move(context)) {}

DoctorDesk::~DoctorDesk() {
  TROUPE_CHECK(::eventfd_write(stop_.get(), 1) == 0,
               "a counter that nobody else writes has room");
  for (std::thread& thread : threads_) thread.join();
}

void DoctorDesk::AnswerAll() {
  while (true) {
    pollfd entries[] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    ::poll(entries, 2, /*timeout=*/-1);
    if (entries[1].revents != 0) return;
    // Another thread may have accepted the connection.
    base::OwnedFd socket(::accept4(listener_.get(), nullptr, nullptr,
                                   SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) continue;
    DoctorStream stream(std::move(socket), context_, /*accepts=*/true,
                        stop_.get());
    stream.set_deadline(absl::Now() + kStrangerTimeout);
    absl::Status status = stream.Handshake();
    // The loop ends when the peer closes the connection.
    while (status.ok()) status = AnswerOne(stream);
  }
}

absl::Status DoctorDesk::AnswerOne(DoctorStream& stream) {
  stream.set_deadline(absl::Now() + kQuestionTimeout + kErrandTimeout);
  Question question = {};
  TROUPE_RETURN_IF_ERROR(stream.Read(&question, sizeof(question)));
  stream.set_deadline(absl::Now() + kQuestionTimeout);
  switch (question.kind) {
    case kAbout:
      return AnswerAbout(stream, version_);
    case kEcho:
    case kBandwidth:
      return AnswerTrip(stream, question.bytes);
    case kMachine:
      return stream.WriteText(WriteFindings(CheckLimits()));
    case kMeasure:
      return AnswerMeasure(stream);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("question ", question.kind,
                       " is unknown; start the same trainer on both hosts"));
  }
}

absl::Status DoctorDesk::AnswerMeasure(DoctorStream& stream) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, stream.ReadText());
  TROUPE_ASSIGN_OR_RETURN(const base::HostPort other,
                          base::ParseHostPort(text));
  absl::StatusOr<PeerFacts> facts = AskDoctor(other, own_, kErrandTimeout);
  stream.set_deadline(absl::Now() + kQuestionTimeout);
  Measured measured = {};
  if (!facts.ok()) {
    measured.code = facts.status().raw_code();
    TROUPE_RETURN_IF_ERROR(stream.Write(&measured, sizeof(measured)));
    return stream.WriteText(facts.status().message());
  }
  measured.skew_nanos = absl::ToInt64Nanoseconds(facts->clock_skew);
  measured.trip_nanos = absl::ToInt64Nanoseconds(facts->round_trip);
  measured.bytes_per_second =
      static_cast<std::int64_t>(facts->bytes_per_second);
  TROUPE_RETURN_IF_ERROR(stream.Write(&measured, sizeof(measured)));
  return stream.WriteText(facts->version);
}

absl::StatusOr<PeerFacts> AskDoctor(const base::HostPort& peer,
                                    const base::tls::CertificateFiles& own,
                                    absl::Duration timeout) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<DoctorPeer> doctor,
                          DoctorPeer::Call(peer, own, timeout));
  return doctor->Measure();
}

}  // namespace troupe::tools

#include "comm/connect/connect_links.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <list>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/field_error.h"
#include "comm/connect/address.h"
#include "comm/connect/host_key.h"
#include "comm/connect/sockets.h"
#include "comm/connect/tls_links.h"
#include "comm/shm/shm_link.h"
#include "comm/tcp/tcp_link.h"

namespace troupe::comm {
namespace {

using Clock = std::chrono::steady_clock;

// Pause between attempts to connect to one process; doubles from the first
// value up to the second.
constexpr std::chrono::milliseconds kRetryFirst(10);
constexpr std::chrono::milliseconds kRetryMax(500);
// Interval at which the store is asked whether the other processes may still
// come.
constexpr std::chrono::milliseconds kCheckInterval(50);

// Returns a duration short enough to be added to a time.
Clock::duration Bounded(absl::Duration duration) {
  return absl::ToChronoNanoseconds(std::min(duration, absl::Hours(24 * 365)));
}

class Connector {
 public:
  Connector(const ConnectOptions& options, Store& store);

  absl::StatusOr<std::vector<std::unique_ptr<Link>>> Run();

 private:
  // Attempts to connect to a process with a lower number.
  struct Attempt {
    int peer = 0;
    std::string name;  // text of its address, for errors
    std::string tcp;
    std::string unix_socket;  // if not empty, used in place of tcp
    std::optional<Handshake> handshake;
    Clock::time_point next{};  // time before which no attempt is made
    Clock::duration pause = kRetryFirst;
    int count = 0;
    absl::Status last;  // error of the last attempt
  };
  // An accepted connection from a process with a higher number, or from a
  // stranger.
  struct Stranger {
    Handshake handshake;
    Clock::time_point until;
    bool shm;
    std::shared_ptr<ShmSegment> segment;
  };

  std::string Key(int process) const {
    return absl::StrCat(options_.key_prefix, "/", options_.generation, "/",
                        process);
  }
  absl::Duration TimeLeft() const;

  absl::Status Listen();
  absl::Status FindOthers();
  absl::Status AddAttempt(int peer, const std::string& text);
  // Runs until all links exist.
  absl::Status Loop();
  void Wait();

  void StepAttempts();
  void Begin(Attempt& attempt);
  void Retry(Attempt& attempt, absl::Status why);
  void AcceptAll(const Listener& listener, bool shm);
  void StepStrangers();
  // Advances one handshake; false: the connection is removed.
  bool StepStranger(Stranger& stranger);

  absl::Status FinishAttempt(Attempt& attempt);
  absl::Status FinishStranger(Stranger& stranger);
  absl::Status MakeLink(int peer, base::OwnedFd socket, std::string address,
                        std::shared_ptr<ShmSegment> segment);
  // Performs the TLS handshakes on the TCP connections, if TLS was requested.
  absl::Status Secure();
  bool Connected(int peer) const {
    return links_[peer] != nullptr || insecure_.contains(peer);
  }
  // Returns an error that names the processes without a link.
  absl::Status Missing();

  const ConnectOptions options_;
  Store& store_;
  const std::string host_key_;
  const Clock::time_point deadline_;
  HandshakeParty me_;
  Listener tcp_;
  Listener unix_;
  std::vector<Attempt> attempts_;
  std::list<Stranger> strangers_;  // the oldest first
  std::vector<std::unique_ptr<Link>> links_;
  std::shared_ptr<TlsContext> tls_;  // null: none
  // Connections that wait for TLS, indexed by peer.
  absl::flat_hash_map<int, Connection> insecure_;
  absl::Status failed_;  // error that ends everything at once
};

Connector::Connector(const ConnectOptions& options, Store& store)
    : options_(options),
      store_(store),
      host_key_(options.host_key.empty() ? HostKey() : options.host_key),
      deadline_(Clock::now() + Bounded(options.timeout)),
      links_(options.processes) {
  me_.token = options.token;
  me_.generation = options.generation;
  me_.process = options.process;
  me_.processes = options.processes;
}

absl::Duration Connector::TimeLeft() const {
  return std::max(absl::ZeroDuration(),
                  absl::FromChrono(deadline_ - Clock::now()));
}

absl::StatusOr<std::vector<std::unique_ptr<Link>>> Connector::Run() {
  if (options_.tls.has_value()) {
    TROUPE_ASSIGN_OR_RETURN(tls_, MakeTlsContext(*options_.tls));
  }
  TROUPE_RETURN_IF_ERROR(Listen());
  TROUPE_RETURN_IF_ERROR(FindOthers());
  TROUPE_RETURN_IF_ERROR(Loop());
  TROUPE_RETURN_IF_ERROR(Secure());
  return std::move(links_);
}

absl::Status Connector::Secure() {
  std::vector<Connection> all;
  for (auto& [peer, connection] : insecure_) {
    all.push_back(std::move(connection));
  }
  if (all.empty()) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(auto links,
                          MakeTlsLinks(tls_, std::move(all), TimeLeft()));
  for (std::unique_ptr<Link>& link : links) {
    const int peer = link->peer();
    links_[peer] = std::move(link);
  }
  return absl::OkStatus();
}

absl::Status Connector::Listen() {
  Address address;
  address.host_key = host_key_;
  if (options_.transport != Transport::kShm) {
    TROUPE_ASSIGN_OR_RETURN(tcp_, ListenTcp(options_.bind_address));
    address.tcp = tcp_.name;
    if (!options_.advertised_host.empty()) {
      address.tcp = absl::StrCat(options_.advertised_host,
                                 tcp_.name.substr(tcp_.name.rfind(':')));
    }
  }
  if (options_.transport != Transport::kTcp) {
    TROUPE_ASSIGN_OR_RETURN(unix_, ListenUnix());
    address.unix_socket = unix_.name;
  }
  return store_.Set(Key(options_.process), FormatAddress(address));
}

absl::Status Connector::FindOthers() {
  for (int peer = 0; peer < options_.process; ++peer) {
    const absl::StatusOr<std::string> text = store_.Get(Key(peer), TimeLeft());
    if (absl::IsDeadlineExceeded(text.status())) return Missing();
    TROUPE_RETURN_IF_ERROR(text.status());
    TROUPE_RETURN_IF_ERROR(AddAttempt(peer, *text));
  }
  return absl::OkStatus();
}

absl::Status Connector::AddAttempt(int peer, const std::string& text) {
  TROUPE_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
  Attempt attempt;
  attempt.peer = peer;
  const bool here = address.host_key == host_key_;
  if (options_.transport == Transport::kShm && !here) {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", peer,
                     " is on another host (or in another network "
                     "namespace) than process ",
                     options_.process,
                     ", and shares no memory with it; use the transport tcp"));
  }
  if (options_.transport == Transport::kTcp || !here) {
    attempt.tcp = address.tcp;
    attempt.name = address.tcp;
  } else {
    attempt.unix_socket = address.unix_socket;
    attempt.name = absl::StrCat("Unix socket ", address.unix_socket);
  }
  if (attempt.tcp.empty() && attempt.unix_socket.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", peer, " listens at \"", text,
                     "\", as another transport does; give all the same"));
  }
  attempts_.push_back(std::move(attempt));
  return absl::OkStatus();
}

absl::Status Connector::Loop() {
  for (;;) {
    StepAttempts();
    if (tcp_.socket.valid()) AcceptAll(tcp_, /*shm=*/false);
    if (unix_.socket.valid()) AcceptAll(unix_, /*shm=*/true);
    StepStrangers();
    TROUPE_RETURN_IF_ERROR(failed_);
    int there = 0;
    for (int peer = 0; peer < options_.processes; ++peer) {
      there += Connected(peer) ? 1 : 0;
    }
    if (there == options_.processes - 1) return absl::OkStatus();
    if (Clock::now() >= deadline_) return Missing();
    TROUPE_RETURN_IF_ERROR(store_.Check());
    Wait();
  }
}

void Connector::Wait() {
  std::vector<pollfd> entries;
  Clock::time_point until =
      std::min<Clock::time_point>(deadline_, Clock::now() + kCheckInterval);
  for (const Listener* listener : {&tcp_, &unix_}) {
    if (listener->socket.valid()) {
      entries.push_back({listener->socket.get(), POLLIN, 0});
    }
  }
  for (const Attempt& attempt : attempts_) {
    if (Connected(attempt.peer)) continue;
    if (attempt.handshake.has_value()) {
      entries.push_back(
          {attempt.handshake->fd(), attempt.handshake->events(), 0});
    } else {
      until = std::min(until, attempt.next);
    }
  }
  for (const Stranger& stranger : strangers_) {
    entries.push_back(
        {stranger.handshake.fd(), stranger.handshake.events(), 0});
    until = std::min(until, stranger.until);
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  const int ms = static_cast<int>(
      std::clamp<std::int64_t>(left.count(), 0, std::int64_t{60} * 1000));
  ::poll(entries.data(), entries.size(), ms);
}

void Connector::StepAttempts() {
  for (Attempt& attempt : attempts_) {
    if (Connected(attempt.peer)) continue;
    if (!attempt.handshake.has_value()) {
      if (Clock::now() < attempt.next) continue;
      Begin(attempt);
      if (!attempt.handshake.has_value()) continue;
    }
    const Handshake::State state = attempt.handshake->Step();
    if (state == Handshake::State::kFailed) {
      Retry(attempt, attempt.handshake->error());
    } else if (state == Handshake::State::kDone) {
      const absl::Status made = FinishAttempt(attempt);
      attempt.handshake.reset();
      if (!made.ok()) Retry(attempt, made);
    }
  }
}

void Connector::Begin(Attempt& attempt) {
  absl::StatusOr<base::OwnedFd> socket =
      attempt.unix_socket.empty() ? ConnectTcp(attempt.tcp, attempt.count)
                                  : ConnectUnix(attempt.unix_socket);
  ++attempt.count;
  if (!socket.ok()) {
    Retry(attempt, socket.status());
    return;
  }
  attempt.handshake.emplace(*std::move(socket), me_, attempt.peer);
}

void Connector::Retry(Attempt& attempt, absl::Status why) {
  attempt.last = std::move(why);
  attempt.handshake.reset();
  attempt.next = Clock::now() + attempt.pause;
  attempt.pause = std::min<Clock::duration>(2 * attempt.pause, kRetryMax);
}

void Connector::AcceptAll(const Listener& listener, bool shm) {
  // Bounded, so that handshakes proceed in between.
  for (std::size_t i = 0; i < kStrangersMax; ++i) {
    base::OwnedFd socket = Accept(listener);
    if (!socket.valid()) {
      const bool none_left = errno == EMFILE || errno == ENFILE ||
                             errno == ENOBUFS || errno == ENOMEM;
      if (!none_left) return;
      if (strangers_.empty()) {
        failed_ = absl::ErrnoToStatus(errno, "cannot accept a connection");
        return;
      }
      strangers_.pop_front();
      continue;
    }
    // Drops the oldest: a process of the job would have finished long ago.
    if (strangers_.size() >= kStrangersMax) strangers_.pop_front();
    strangers_.push_back({Handshake(std::move(socket), me_),
                          Clock::now() + Bounded(options_.stranger_timeout),
                          shm, nullptr});
  }
}

void Connector::StepStrangers() {
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    if (StepStranger(*stranger)) {
      ++stranger;
    } else {
      stranger = strangers_.erase(stranger);
    }
  }
}

bool Connector::StepStranger(Stranger& stranger) {
  Handshake::State state = stranger.handshake.Step();
  if (state == Handshake::State::kAsks) {
    int descriptor = -1;
    absl::Status accepted;
    if (stranger.shm) {
      auto segment = ShmSegment::Create(options_.ring_bytes);
      accepted = segment.status();
      if (segment.ok()) {
        stranger.segment = *std::move(segment);
        descriptor = stranger.segment->fd();
      }
    }
    stranger.handshake.Answer(accepted.ok(), descriptor);
    if (!accepted.ok()) {
      failed_ = base::WithMessage(
          accepted,
          absl::StrCat("process ", options_.process, " ", accepted.message()));
    }
    state = stranger.handshake.Step();
  }
  if (state == Handshake::State::kDone) {
    failed_.Update(FinishStranger(stranger));
    return false;
  }
  return state == Handshake::State::kWaits && Clock::now() < stranger.until;
}

absl::Status Connector::FinishAttempt(Attempt& attempt) {
  std::shared_ptr<ShmSegment> segment;
  if (!attempt.unix_socket.empty()) {
    base::OwnedFd file = attempt.handshake->TakeDescriptor();
    if (!file.valid()) {
      return absl::InternalError("no shared memory came with its reply");
    }
    TROUPE_ASSIGN_OR_RETURN(segment, ShmSegment::Open(std::move(file)));
  }
  base::OwnedFd socket = attempt.handshake->TakeSocket();
  std::string name = segment == nullptr ? attempt.name : PeerName(socket.get());
  return MakeLink(attempt.peer, std::move(socket), std::move(name),
                  std::move(segment));
}

absl::Status Connector::FinishStranger(Stranger& stranger) {
  base::OwnedFd socket = stranger.handshake.TakeSocket();
  std::string name = PeerName(socket.get());
  // A process that connects again has closed its earlier connection.
  return MakeLink(stranger.handshake.peer(), std::move(socket), std::move(name),
                  std::move(stranger.segment));
}

absl::Status Connector::MakeLink(int peer, base::OwnedFd socket,
                                 std::string address,
                                 std::shared_ptr<ShmSegment> segment) {
  if (segment == nullptr && tls_ != nullptr) {
    const bool accepted = peer > options_.process;
    insecure_[peer] = {peer, std::move(address), std::move(socket), accepted};
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<Link>> link;
  if (segment != nullptr) {
    ShmLinkOptions options;
    options.peer = peer;
    options.address = std::move(address);
    options.side = peer > options_.process ? 0 : 1;
    link = MakeShmLink(std::move(segment), std::move(socket), options);
  } else {
    TcpLinkOptions options;
    options.peer = peer;
    options.address = std::move(address);
    link = MakeTcpLink(std::move(socket), options);
  }
  TROUPE_RETURN_IF_ERROR(link.status());
  links_[peer] = *std::move(link);
  return absl::OkStatus();
}

absl::Status Connector::Missing() {
  std::vector<std::string> lines;
  for (int peer = 0; peer < options_.processes; ++peer) {
    if (peer == options_.process || Connected(peer)) continue;
    const auto attempt =
        std::find_if(attempts_.begin(), attempts_.end(),
                     [peer](const Attempt& a) { return a.peer == peer; });
    const absl::StatusOr<std::string> address =
        store_.Get(Key(peer), absl::ZeroDuration());
    std::string why = "has not left its address";
    if (attempt != attempts_.end()) {
      why = absl::StrCat(
          "at ", attempt->name, ": ",
          attempt->last.ok() ? "it does not answer" : attempt->last.message());
    } else if (address.ok()) {
      why = absl::StrCat("at \"", *address, "\" has not connected");
    }
    lines.push_back(absl::StrCat("process ", peer, " ", why));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("process ", options_.process, " has no link to ",
                   lines.size(), " of ", options_.processes - 1,
                   " others after ", absl::FormatDuration(options_.timeout),
                   ": ", absl::StrJoin(lines, "; ")));
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Link>>> ConnectLinks(
    const ConnectOptions& options, Store& store) {
  TROUPE_RETURN_IF_ERROR(options.Validate());
  return Connector(options, store).Run();
}

}  // namespace troupe::comm

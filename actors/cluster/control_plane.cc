#include "actors/cluster/control_plane.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "actors/caf/actor_timeout.h"
#include "actors/caf/status_error.h"
#include "actors/cluster/host_address.h"
#include "base/check.h"
#include "base/tls/certificate_check.h"
#include "base/tls/random_bytes.h"
#include "caf/detail/get_root_uuid.hpp"
#include "caf/io/middleman.hpp"
#include "caf/io/middleman_actor.hpp"
#include "caf/io/publish.hpp"
#include "caf/openssl/manager.hpp"
#include "caf/openssl/publish.hpp"
#include "caf/scoped_actor.hpp"

// CAF makes a node id from the host's addresses and the process id: two
// containers that share a network may get the same id, and each would take the
// other's actors for its own. This function replaces one of the library, whose
// id of the root disk is part of the node id, so that node ids are unique.
namespace caf::detail {

std::string get_root_uuid() {
  return absl::BytesToHexString(troupe::base::tls::RandomBytes(16));
}

}  // namespace caf::detail

namespace troupe::actors {
namespace {

// Number of handshakes that may fail before Connect() gives up: a single one
// may fail because the process at the other end is starting or leaving.
constexpr int kHandshakesMax = 3;
constexpr absl::Duration kHandshakeTimeout = absl::Seconds(5);
constexpr absl::Duration kShortestHandshake = absl::Milliseconds(100);
constexpr absl::Duration kFirstPause = absl::Milliseconds(2);
constexpr absl::Duration kLongestPause = absl::Milliseconds(500);

std::string Address(const ClusterOptions& options) {
  return HostAndPort(options.master_host, options.master_port);
}

// Connects, attempts a handshake, and asks for the actor that is published
// there.
//   kNotFound, kUnavailable: OpenConnection()'s, before any handshake.
absl::StatusOr<CoordinatorActor> ConnectOnce(caf::actor_system& system,
                                             const ClusterOptions& options,
                                             absl::Duration timeout) {
  const caf::io::middleman_actor middleman =
      options.insecure ? system.middleman().actor_handle()
                       : system.openssl_manager().actor_handle();
  absl::StatusOr<CoordinatorActor> result =
      absl::InternalError("nothing is published there");
  caf::scoped_actor self(system);
  self->request(middleman, ActorTimeout(timeout), caf::connect_atom::value,
                options.master_host,
                static_cast<std::uint16_t>(options.master_port))
      .receive(
          [&](const caf::node_id&, const caf::strong_actor_ptr& actor,
              const std::set<std::string>&) {
            if (actor != nullptr) {
              result = caf::actor_cast<CoordinatorActor>(actor);
            }
          },
          [&](const caf::error& error) { result = FromError(system, error); });
  return result;
}

// Waits for `pause`, or until options.give_up is notified; returns whether it
// was.
bool GiveUp(const ClusterOptions& options, absl::Duration pause) {
  static const absl::Notification* const kNever = new absl::Notification();
  const absl::Notification& given_up =
      options.give_up == nullptr ? *kNever : *options.give_up;
  return given_up.WaitForNotificationWithTimeout(pause);
}

}  // namespace

absl::Status OpenNetwork(const ClusterOptions& options,
                         caf::actor_system_config& config) {
  config.load<caf::io::middleman>();
  // CAF's own heartbeats stay off: agents and the coordinator have theirs,
  // which name the silent process (liveness.h).
  if (options.insecure) {
    TROUPE_ASSIGN_OR_RETURN(const bool is_public,
                            IsPublicAddress(options.master_host));
    if (!is_public) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "without TLS (--insecure-network) process 0 may not listen at ",
        options.master_host,
        ", which is a public address: anybody could end the job, or worse; use "
        "certificates (trainer certs), or a private network"));
  }
  const base::tls::CertificateFiles& files = options.certificates;
  TROUPE_RETURN_IF_ERROR(base::tls::CheckCertificates(files, absl::Now()));
  config.load<caf::openssl::manager>();
  config.openssl_certificate = files.certificate;
  config.openssl_key = files.key;
  config.openssl_cafile = files.authority;
  return absl::OkStatus();
}

absl::StatusOr<int> Publish(caf::actor_system& system,
                            const CoordinatorActor& coordinator,
                            const ClusterOptions& options) {
  const auto port = static_cast<std::uint16_t>(options.master_port);
  const char* const host = options.master_host.c_str();
  const caf::expected<std::uint16_t> published =
      options.insecure ? caf::io::publish(coordinator, port, host, true)
                       : caf::openssl::publish(coordinator, port, host, true);
  if (published) return static_cast<int>(*published);
  // CAF's error does not have the reason.
  const absl::Status tried =
      TryListening(options.master_host, options.master_port);
  const std::string why =
      tried.ok() ? absl::StrCat(FromError(system, published.error()).message(),
                                "; try again, or another port")
                 : std::string(tried.message());
  return absl::UnavailableError(
      absl::StrCat("process 0 cannot listen at ", Address(options), ": ", why));
}

absl::StatusOr<CoordinatorActor> Connect(caf::actor_system& system,
                                         const ClusterOptions& options,
                                         absl::Time deadline) {
  absl::Duration pause = kFirstPause;
  absl::Status last;
  for (int handshakes = 0; handshakes < kHandshakesMax;) {
    const absl::Duration left =
        std::max(deadline - absl::Now(), kShortestHandshake);
    absl::StatusOr<CoordinatorActor> coordinator =
        ConnectOnce(system, options, std::min(left, kHandshakeTimeout));
    if (coordinator.ok()) return coordinator;
    last = coordinator.status();
    if (!absl::IsUnavailable(last) && !absl::IsNotFound(last)) ++handshakes;
    if (absl::Now() + pause > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("process ", options.process,
                       " cannot reach process 0: ", last.message(),
                       "; start process 0 too, and let firewalls pass its "
                       "port"));
    }
    if (GiveUp(options, pause)) {
      return absl::CancelledError(absl::StrCat(
          "given up before process 0 was there: ", last.message()));
    }
    pause = std::min(2 * pause, kLongestPause);
  }
  return absl::UnauthenticatedError(absl::StrCat(
      "process 0 at ", Address(options), " and process ", options.process,
      " do not come to terms (", last.message(),
      options.insecure
          ? "): one of them speaks TLS, the other does not, or something else "
            "listens there"
          : absl::StrCat("): their certificates must be signed by one "
                         "authority, here ",
                         options.certificates.authority,
                         ", or something else listens there")));
}

}  // namespace troupe::actors

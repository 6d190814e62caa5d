#include "comm/connect/tls_links.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "comm/tcp/tcp_link.h"

namespace troupe::comm {
namespace {

using Clock = std::chrono::steady_clock;
using Streams = std::vector<std::unique_ptr<TlsStream>>;

std::string Name(const Connection& connection) {
  return absl::StrCat("process ", connection.peer, " at ", connection.address);
}

// Runs all handshakes until all are complete, or one fails.
absl::Status ShakeHands(const std::vector<Connection>& connections,
                        const Streams& streams, Clock::time_point deadline) {
  for (;;) {
    std::vector<pollfd> waiting;
    std::string first;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const TlsStream::State state = streams[i]->Handshake();
      if (state == TlsStream::State::kFailed) {
        const absl::Status& error = streams[i]->error();
        return base::WithMessage(
            error, absl::StrCat(Name(connections[i]), ": ", error.message()));
      }
      if (state == TlsStream::State::kDone) continue;
      if (waiting.empty()) first = Name(connections[i]);
      waiting.push_back({connections[i].socket.get(), streams[i]->events(), 0});
    }
    if (waiting.empty()) return absl::OkStatus();
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      return absl::DeadlineExceededError(
          absl::StrCat(first,
                       " does not end its TLS handshake; use TLS in all "
                       "processes, or in none"));
    }
    ::poll(waiting.data(), waiting.size(),
           static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Link>>> MakeTlsLinks(
    const std::shared_ptr<TlsContext>& context,
    std::vector<Connection> connections, absl::Duration timeout) {
  const Clock::time_point deadline =
      Clock::now() +
      absl::ToChronoNanoseconds(std::min(timeout, absl::Hours(24)));
  Streams streams;
  for (const Connection& connection : connections) {
    streams.push_back(std::make_unique<TlsStream>(
        context, connection.socket.get(), connection.accepted));
  }
  TROUPE_RETURN_IF_ERROR(ShakeHands(connections, streams, deadline));
  std::vector<std::unique_ptr<Link>> links;
  for (std::size_t i = 0; i < connections.size(); ++i) {
    TcpLinkOptions options;
    options.peer = connections[i].peer;
    options.address = std::move(connections[i].address);
    options.transport = "tls";
    TROUPE_ASSIGN_OR_RETURN(auto link,
                            MakeStreamLink(std::move(connections[i].socket),
                                           std::move(streams[i]), options));
    links.push_back(std::move(link));
  }
  return links;
}

}  // namespace troupe::comm

#include "tests/comm/links/link_test_util.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "comm/connect/sockets.h"
#include "comm/connect/tls_links.h"
#include "comm/shm/shm_link.h"
#include "comm/tcp/tcp_link.h"
#include "comm/tcp/tls_stream.h"
#include "gtest/gtest.h"
#include "tests/comm/links/test_certificates.h"

namespace troupe::comm {
namespace {

constexpr std::chrono::minutes kPatience(1);

std::unique_ptr<Link> TcpEnd(base::OwnedFd socket, int peer) {
  TcpLinkOptions options;
  options.peer = peer;
  options.address = "the other thread";
  return *MakeTcpLink(std::move(socket), options);
}

LinkPair ShmPair(std::shared_ptr<ShmSegment> a, std::shared_ptr<ShmSegment> b) {
  SocketPair sockets = MakeSockets();
  ShmLinkOptions options;
  options.address = "the other thread";
  options.peer = 1;
  LinkPair pair;
  pair.a = *MakeShmLink(std::move(a), std::move(sockets.a), options);
  options.peer = 0;
  options.side = 1;
  pair.b = *MakeShmLink(std::move(b), std::move(sockets.b), options);
  return pair;
}

}  // namespace

SocketPair MakeSockets() {
  int ends[2];
  TROUPE_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0,
               "a test may have sockets");
  return {base::OwnedFd(ends[0]), base::OwnedFd(ends[1])};
}

SocketPair MakeTcpSockets() {
  const Listener listener = *ListenTcp("127.0.0.1");
  SocketPair pair;
  pair.a = *ConnectTcp(listener.name, /*attempt=*/0);
  pollfd entry{listener.socket.get(), POLLIN, 0};
  TROUPE_CHECK(::poll(&entry, 1, 60000) == 1, "loopback connects");
  pair.b = Accept(listener);
  for (const base::OwnedFd* end : {&pair.a, &pair.b}) {
    ::fcntl(end->get(), F_SETFL, 0);
  }
  return pair;
}

LinkPair MakeTcpPair() {
  SocketPair sockets = MakeTcpSockets();
  return {TcpEnd(std::move(sockets.a), 1), TcpEnd(std::move(sockets.b), 0)};
}

LinkPair MakeUnixPair() {
  SocketPair sockets = MakeSockets();
  return {TcpEnd(std::move(sockets.a), 1), TcpEnd(std::move(sockets.b), 0)};
}

LinkPair MakeTlsPair() {
  static const std::shared_ptr<TlsContext> context =
      *MakeTlsContext(MakeTestCertificates(testing::TempDir(), "pair"));
  SocketPair sockets = MakeTcpSockets();
  std::unique_ptr<Link> ends[2];
  const auto secure = [&](int end, base::OwnedFd socket) {
    ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
    std::vector<Connection> one;
    one.push_back({1 - end, "the other thread", std::move(socket), end == 1});
    ends[end] = std::move(
        MakeTlsLinks(context, std::move(one), absl::Minutes(1))->at(0));
  };
  std::thread other([&] { secure(1, std::move(sockets.b)); });
  secure(0, std::move(sockets.a));
  other.join();
  return {std::move(ends[0]), std::move(ends[1])};
}

LinkPair MakeShmPair() {
  const auto segment = *ShmSegment::Create(kRingBytesMin);
  return ShmPair(segment, segment);
}

LinkPair MakeRemappedShmPair() {
  auto a = *ShmSegment::Create(kRingBytesMin);
  auto b = *ShmSegment::Open(base::OwnedFd(::dup(a->fd())));
  return ShmPair(std::move(a), std::move(b));
}

std::string Text(std::size_t bytes, std::uint64_t seed) {
  // Eight bytes a draw: draws of single ones take seconds under a sanitizer.
  std::vector<std::uint64_t> words(bytes / 8 + 1);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::uint64_t& word : words) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    word = state ^ state >> 29;
  }
  return std::string(reinterpret_cast<const char*>(words.data()), bytes);
}

char* RecordingSink::Place(int, const Frame& frame) {
  if (frame.bytes == 0) Complain("Place() without a payload; ");
  if (awaits_take_) Complain("Place() of a frame behind one without place; ");
  awaits_take_ = places_ == Places::kNever ||
                 (places_ == Places::kEverySecond && frame.seq % 2 == 0);
  if (awaits_take_) return nullptr;
  placed_.emplace_back(new char[frame.bytes]);
  return placed_.back().get();
}

void RecordingSink::Take(int, const Frame& frame, const char* payload) {
  if (inside_.exchange(true)) Complain("two calls at once; ");
  if (!placed_.empty() && payload != placed_.front().get()) {
    Complain("not placed; ");
  }
  if (reinterpret_cast<std::uintptr_t>(payload) % 16 != 0) {
    Complain("a payload is not aligned; ");
  }
  if (losses_ > 0) Complain("a frame after OnLost(); ");
  awaits_take_ = false;
  {
    absl::MutexLock lock(&mutex_);
    all_.push_back({frame, forget_payloads || frame.bytes == 0
                               ? std::string()
                               : std::string(payload, frame.bytes)});
  }
  if (!placed_.empty()) placed_.pop_front();
  ++count_;
  if (on_take) on_take(frame);
  inside_ = false;
}

void RecordingSink::OnLost(int, const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  why_ = why;
  ++losses_;
}

std::vector<RecordingSink::Got> RecordingSink::all() const {
  absl::MutexLock lock(&mutex_);
  return all_;
}

RecordingSink::Got RecordingSink::last() const {
  absl::MutexLock lock(&mutex_);
  return all_.back();
}

absl::Status RecordingSink::why() const {
  absl::MutexLock lock(&mutex_);
  return why_;
}

std::string RecordingSink::complaints() const {
  absl::MutexLock lock(&mutex_);
  return complaints_;
}

void RecordingSink::Complain(const std::string& what) {
  absl::MutexLock lock(&mutex_);
  if (complaints_.size() < 1000) complaints_ += what;
}

bool Pump(std::initializer_list<Link*> links,
          const std::function<bool()>& done) {
  // A link through shared memory looks at its socket after many idle calls. On
  // a busy machine each yield may take milliseconds, so not every call has one.
  constexpr int kIdlePerYield = 1000;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (int idle = 1; !done(); ++idle) {
    bool moved = false;
    for (Link* link : links) moved |= link->Progress();
    if (moved || idle % kIdlePerYield != 0) continue;
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

Bell::Bell() : fd_(::eventfd(0, EFD_CLOEXEC)) {}

void Bell::Ring() {
  const std::uint64_t once = 1;
  TROUPE_CHECK(::write(fd_.get(), &once, sizeof(once)) == sizeof(once),
               "an eventfd takes a number");
}

bool PumpWithPoll(Link* link, const std::function<bool()>& done,
                  Bell* finished) {
  while (!done()) {
    if (link->Progress()) continue;
    pollfd entries[2] = {{-1, 0, 0}, {finished->fd(), POLLIN, 0}};
    absl::Duration patience = absl::Minutes(1);
    if (!link->Arm(&entries[0], &patience)) continue;
    const timespec wait = absl::ToTimespec(patience);
    const int ready = ::ppoll(entries, 2, &wait, /*sigmask=*/nullptr);
    // A link without a descriptor is polled with a time-out.
    if (ready == 0 && entries[0].fd >= 0) return false;
  }
  finished->Ring();
  return true;
}

}  // namespace troupe::comm

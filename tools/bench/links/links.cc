// Times the links between two processes, and, in alternating rounds, a bare
// socket that carries as many bytes: TCP over loopback beside the TCP link, a
// Unix stream beside the link through shared memory.
//
//   bazel run -c opt //tools/bench/links
//   ... --rounds=15 --json             one JSON object per line
//   ... --rate=10gbit                  TCP between two hosts of network
//                                      namespaces, whose link has that rate
//
// "48 B" is half the round trip of a frame with that payload, while both ends
// busy-poll; likewise the other sizes. "25 MB in 256 KB" is the throughput of
// 256 KB frames in one direction, into memory that the receiver chose. A round
// is divided into blocks, and its figure is their median; that of a case is the
// median of its rounds.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/files/owned_fd.h"
#include "comm/connect/sockets.h"
#include "comm/link.h"
#include "comm/shm/shm_link.h"
#include "comm/tcp/tcp_link.h"
#include "tools/bench/report.h"
#include "tools/network/network_hosts.h"

ABSL_FLAG(int, rounds, 7, "rounds of each case; the median counts");
ABSL_FLAG(std::string, rate, "",
          "rate of the link between two hosts of network namespaces, in the "
          "notation of tc(8), for TCP; needs root. Empty: loopback");
ABSL_FLAG(bool, json, false, "print one JSON object a line");

namespace troupe::bench {
namespace {

constexpr std::size_t kBytesMax = 1 << 20;
// Number of blocks in a round, after one to warm up.
constexpr int kBlocks = 15;
constexpr int kStreamFrames = 100;
constexpr std::size_t kStreamBytes = 256 << 10;

// One end of a connection that carries messages. When Receive() returns at the
// other end, the sender may reuse the memory of that message.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual void Send(const char* message, std::size_t bytes) = 0;
  virtual void Receive(char* message, std::size_t bytes) = 0;
};

class LinkWire : public Wire, private comm::FrameSink, private comm::SendDone {
 public:
  explicit LinkWire(std::unique_ptr<comm::Link> link) : link_(std::move(link)) {
    link_->SetSink(this);
  }
  void Send(const char* message, std::size_t bytes) override {
    comm::Frame frame;
    frame.bytes = static_cast<std::uint32_t>(bytes);
    link_->Send(frame, message, this);
  }
  void Receive(char* message, std::size_t) override {
    place_ = message;
    for (++wanted_; taken_ < wanted_;) link_->Progress();
  }

 private:
  char* Place(int, const comm::Frame&) override { return place_; }
  void Take(int, const comm::Frame&, const char*) override { ++taken_; }
  void OnLost(int, const absl::Status&) override { ::_exit(1); }
  void OnSent() override {}

  char* place_ = nullptr;
  std::int64_t taken_ = 0;
  std::int64_t wanted_ = 0;
  const std::unique_ptr<comm::Link> link_;
};

class SocketWire : public Wire {
 public:
  explicit SocketWire(base::OwnedFd socket) : socket_(std::move(socket)) {}
  void Send(const char* message, std::size_t bytes) override {
    for (std::size_t at = 0; at < bytes;) {
      at += Moved(::send(socket_.get(), message + at, bytes - at,
                         MSG_DONTWAIT | MSG_NOSIGNAL));
    }
  }
  void Receive(char* message, std::size_t bytes) override {
    for (std::size_t at = 0; at < bytes;) {
      at +=
          Moved(::recv(socket_.get(), message + at, bytes - at, MSG_DONTWAIT));
    }
  }

 private:
  static std::size_t Moved(ssize_t result) {
    if (result > 0) return static_cast<std::size_t>(result);
    if (result == 0 || errno != EAGAIN) ::_exit(1);
    return 0;
  }
  const base::OwnedFd socket_;
};

struct Sockets {
  base::OwnedFd a;
  base::OwnedFd b;
};

Sockets UnixSockets() {
  int ends[2];
  TROUPE_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0,
               "a benchmark may have sockets");
  return {base::OwnedFd(ends[0]), base::OwnedFd(ends[1])};
}

// Returns the hosts joined at --rate; null without that flag.
const network::NetworkHosts* Hosts() {
  static const auto* const hosts = [] {
    network::NetworkOptions options;
    options.rate = absl::GetFlag(FLAGS_rate);
    if (options.rate.empty()) {
      return std::unique_ptr<network::NetworkHosts>().release();
    }
    auto made = network::NetworkHosts::Make(options);
    if (!made.ok()) {
      std::fprintf(stderr, "links: %s\n", made.status().ToString().c_str());
      std::exit(1);
    }
    return made->release();
  }();
  return hosts;
}

// Runs `make` on a host: a socket belongs to the host that creates it.
void OnHost(int host, const std::function<void()>& make) {
  if (Hosts() == nullptr) return make();
  std::thread([host, &make] {
    TROUPE_CHECK(Hosts()->Enter(host).ok(), "root may enter its namespaces");
    make();
  }).join();
}

Sockets TcpSockets() {
  comm::Listener listener;
  OnHost(1, [&listener] {
    listener = *comm::ListenTcp(
        Hosts() == nullptr ? "127.0.0.1" : network::NetworkHosts::address(1));
  });
  Sockets sockets;
  OnHost(0, [&sockets, &listener] {
    sockets.a = *comm::ConnectTcp(listener.name, /*attempt=*/0);
  });
  while (!sockets.b.valid()) sockets.b = comm::Accept(listener);
  return sockets;
}

// Both ends of a connection, made before the fork; each process takes one.
using Wires = std::pair<std::unique_ptr<Wire>, std::unique_ptr<Wire>>;

Wires TcpLinks() {
  Sockets sockets = TcpSockets();
  const comm::TcpLinkOptions options;
  return {std::make_unique<LinkWire>(
              *comm::MakeTcpLink(std::move(sockets.a), options)),
          std::make_unique<LinkWire>(
              *comm::MakeTcpLink(std::move(sockets.b), options))};
}

Wires ShmLinks() {
  const auto segment = *comm::ShmSegment::Create(comm::kRingBytesMin);
  Sockets sockets = UnixSockets();
  comm::ShmLinkOptions a;
  comm::ShmLinkOptions b;
  b.side = 1;
  return {std::make_unique<LinkWire>(
              *comm::MakeShmLink(segment, std::move(sockets.a), a)),
          std::make_unique<LinkWire>(
              *comm::MakeShmLink(segment, std::move(sockets.b), b))};
}

Wires Bare(Sockets sockets) {
  return {std::make_unique<SocketWire>(std::move(sockets.a)),
          std::make_unique<SocketWire>(std::move(sockets.b))};
}
Wires BareTcp() { return Bare(TcpSockets()); }
Wires BareUnix() { return Bare(UnixSockets()); }

struct Case {
  const char* name;
  std::size_t bytes;
  int repeats;  // number of runs in one block
  bool stream;
};

constexpr Case kCases[] = {
    {"48 B", 48, 50, false},
    {"4 KB", 4 << 10, 50, false},
    {"64 KB", 64 << 10, 10, false},
    {"1 MB", kBytesMax, 2, false},
    {"25 MB in 256 KB", kStreamBytes, 1, true},
};

// Runs the case once, as process `me`, 0 or 1.
void Exchange(const Case& c, int me, Wire& wire, char* memory) {
  if (!c.stream) {
    if (me == 0) wire.Send(memory, c.bytes);
    wire.Receive(memory + kBytesMax, c.bytes);
    if (me == 1) wire.Send(memory, c.bytes);
    return;
  }
  for (int i = 0; i < kStreamFrames; ++i) {
    if (me == 0) wire.Send(memory, c.bytes);
    if (me == 1) wire.Receive(memory + kBytesMax, c.bytes);
  }
  if (me == 0) wire.Receive(memory + kBytesMax, 1);
  if (me == 1) wire.Send(memory, 1);
}

// Returns half a round trip in microseconds, or the throughput in GB/s.
double Measure(const Case& c, Wires (*make)()) {
  Wires wires = make();
  const std::unique_ptr<char[]> memory(new char[2 * kBytesMax]());
  const int count = (kBlocks + 1) * c.repeats;
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < count; ++i) {
      Exchange(c, 1, *wires.second, memory.get());
    }
    ::_exit(0);
  }
  TROUPE_CHECK(child > 0, "a benchmark may have a process");
  std::vector<double> us;
  for (int block = 0; block <= kBlocks; ++block) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < c.repeats; ++i) {
      Exchange(c, 0, *wires.first, memory.get());
    }
    const std::chrono::duration<double, std::micro> time =
        std::chrono::steady_clock::now() - begin;
    if (block > 0) us.push_back(time.count() / c.repeats);
  }
  ::waitpid(child, nullptr, 0);
  if (!c.stream) return Median(us) / 2;
  return 1e-3 * kStreamFrames * static_cast<double>(c.bytes) / Median(us);
}

void Run() {
  Report report("links", absl::GetFlag(FLAGS_json) ? Report::Form::kJson
                                                   : Report::Form::kTable);
  struct Transport {
    const char* name;
    Wires (*ours)();
    Wires (*theirs)();
  };
  for (const Transport& transport : {Transport{"tcp", &TcpLinks, &BareTcp},
                                     Transport{"shm", &ShmLinks, &BareUnix}}) {
    for (const Case& c : kCases) {
      std::vector<double> ours;
      std::vector<double> theirs;
      for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
        // Ours runs first in even rounds, theirs in odd ones.
        if (round % 2 == 0) ours.push_back(Measure(c, transport.ours));
        theirs.push_back(Measure(c, transport.theirs));
        if (round % 2 == 1) ours.push_back(Measure(c, transport.ours));
      }
      report.Add({absl::StrCat(transport.name, " ", c.name), /*ranks=*/2,
                  c.stream ? "GB/s" : "us", Median(ours), Median(theirs),
                  c.stream ? Better::kHigher : Better::kLower});
    }
  }
  report.End();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Times links between two processes beside bare sockets.");
  absl::ParseCommandLine(argc, argv);
  troupe::bench::Run();
  return 0;
}

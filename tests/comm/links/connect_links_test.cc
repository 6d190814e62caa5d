#include "comm/connect/connect_links.h"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "comm/connect/address.h"
#include "comm/connect/host_key.h"
#include "comm/connect/sockets.h"
#include "comm/connect/transports.h"
#include "comm/memory_store.h"
#include "gtest/gtest.h"
#include "tests/comm/links/link_test_util.h"
#include "tests/comm/links/test_certificates.h"

namespace troupe::comm {
namespace {

using Links = std::vector<std::unique_ptr<Link>>;

ConnectOptions Options(int process, int processes) {
  ConnectOptions options;
  options.process = process;
  options.processes = processes;
  options.token.fill(9);
  return options;
}

// Connects processes, each in a thread of its own.
std::vector<absl::StatusOr<Links>> ConnectAll(
    int processes, const std::function<void(ConnectOptions*)>& change) {
  MemoryStore store;
  std::vector<absl::StatusOr<Links>> all(processes);
  std::vector<std::thread> threads;
  for (int process = 0; process < processes; ++process) {
    threads.emplace_back([&, process] {
      ConnectOptions options = Options(process, processes);
      change(&options);
      all[process] = ConnectLinks(options, store);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return all;
}

// Expects that a frame from `from` arrives at `to`, with the right numbers.
void ExpectConnected(Link* from, Link* to) {
  RecordingSink at_from;
  RecordingSink at_to;
  from->SetSink(&at_from);
  to->SetSink(&at_to);
  Frame frame;
  frame.words[0] = static_cast<std::uint64_t>(to->peer());
  from->Send(frame, nullptr, nullptr);
  ASSERT_TRUE(Pump({from, to}, [&] { return at_to.count() == 1; }));
  EXPECT_EQ(at_to.all()[0].frame.words[0],
            static_cast<std::uint64_t>(to->peer()));
}

TEST(ConnectLinksTest, EachWithEach) {
  for (const Transport transport :
       {Transport::kAuto, Transport::kShm, Transport::kTcp}) {
    for (const int processes : {1, 2, 3, 5}) {
      const auto all = ConnectAll(processes, [&](ConnectOptions* options) {
        options->transport = transport;
      });
      for (int i = 0; i < processes; ++i) {
        ASSERT_TRUE(all[i].ok()) << all[i].status();
        ASSERT_EQ(all[i]->size(), static_cast<std::size_t>(processes));
        EXPECT_EQ((*all[i])[i], nullptr);
        for (int j = 0; j < i; ++j) {
          Link* const here = (*all[i])[j].get();
          Link* const there = (*all[j])[i].get();
          EXPECT_EQ(here->peer(), j);
          EXPECT_EQ(there->peer(), i);
          EXPECT_TRUE(absl::StartsWith(
              here->ToString(), transport == Transport::kTcp ? "tcp" : "shm"))
              << here->ToString();
          ExpectConnected(here, there);
          ExpectConnected(there, here);
        }
      }
    }
  }
}

TEST(ConnectLinksTest, SharesMemoryWithinAHostOnly) {
  const auto all = ConnectAll(4, [](ConnectOptions* options) {
    options->host_key = options->process < 2 ? "left" : "right";
  });
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(all[i].ok()) << all[i].status();
    for (int j = 0; j < 4; ++j) {
      if (i == j) continue;
      const char* const want = i / 2 == j / 2 ? "shm to process " : "tcp to ";
      EXPECT_TRUE(absl::StartsWith((*all[i])[j]->ToString(), want));
    }
  }
}

TEST(ConnectLinksTest, CannotShareMemoryBetweenHosts) {
  const auto all = ConnectAll(2, [](ConnectOptions* options) {
    options->host_key =
        absl::StrCat("host ", options->process).replace(4, 1, "_");
    options->transport = Transport::kShm;
    options->timeout = absl::Milliseconds(300);
  });
  EXPECT_EQ(all[1].status(),
            absl::FailedPreconditionError(
                "process 0 is on another host (or in another network "
                "namespace) than process 1, and shares no memory with it; use "
                "the transport tcp"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(all[0].status()));
}

TEST(ConnectLinksTest, NamesWhoDidNotCome) {
  MemoryStore store;
  ConnectOptions options = Options(1, 4);
  options.timeout = absl::Milliseconds(200);
  EXPECT_EQ(ConnectLinks(options, store).status(),
            absl::DeadlineExceededError(
                "process 1 has no link to 3 of 3 others after 200ms: process 0 "
                "has not left its address; process 2 has not left its address; "
                "process 3 has not left its address"));

  // The port of process 0 is closed; process 3 does not answer.
  const std::string gone = ListenTcp("127.0.0.1")->name;
  ASSERT_TRUE(store.Set("links/0/0", "elsewhere " + gone + " -").ok());
  ASSERT_TRUE(store.Set("links/0/3", "elsewhere 10.0.0.7:1 -").ok());
  const absl::Status status = ConnectLinks(options, store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(),
            absl::StrCat(
                "process 1 has no link to 3 of 3 others after 200ms: process 0 "
                "at ",
                gone,
                ": cannot connect: Connection refused; process 2 has not left "
                "its address; process 3 at \"elsewhere 10.0.0.7:1 -\" has not "
                "connected"));
}

TEST(ConnectLinksTest, AnotherTokenDoesNotComeIn) {
  for (const Transport transport : {Transport::kTcp, Transport::kShm}) {
    const auto all = ConnectAll(2, [&](ConnectOptions* options) {
      options->transport = transport;
      options->timeout = absl::Seconds(1);
      if (options->process == 1) options->token.fill(8);
    });
    EXPECT_TRUE(absl::IsDeadlineExceeded(all[0].status()));
    EXPECT_TRUE(absl::StrContains(all[1].status().message(), "token"))
        << all[1].status();
  }
}

TEST(ConnectLinksTest, ChecksItsOptions) {
  MemoryStore store;
  ConnectOptions options = Options(2, 2);
  EXPECT_EQ(ConnectLinks(options, store).status(),
            absl::InvalidArgumentError(
                "ConnectOptions.process must be 0 to 1, not 2"));
  options = Options(0, 2);
  options.token.fill(0);
  EXPECT_EQ(ConnectLinks(options, store).status(),
            absl::InvalidArgumentError("ConnectOptions.token is not set; give "
                                       "all processes of a job one"));
  options = Options(0, 2);
  options.bind_address = "0.0.0.0";
  EXPECT_TRUE(absl::StrContains(ConnectLinks(options, store).status().message(),
                                "advertised_host must say"));
  options = Options(0, 2);
  options.bind_address = "localhost:80";
  EXPECT_TRUE(absl::StrContains(ConnectLinks(options, store).status().message(),
                                "\"localhost:80\""));
}

TEST(ConnectLinksTest, ConnectsByNameAndByIpv6) {
  const auto by_name = ConnectAll(2, [](ConnectOptions* options) {
    options->transport = Transport::kTcp;
    options->advertised_host = "localhost";
  });
  EXPECT_TRUE(by_name[0].ok()) << by_name[0].status();
  EXPECT_TRUE(by_name[1].ok()) << by_name[1].status();
  if (!ListenTcp("::1").ok()) GTEST_SKIP() << "no IPv6 here";
  const auto by_v6 = ConnectAll(2, [](ConnectOptions* options) {
    options->transport = Transport::kTcp;
    options->bind_address = "::1";
  });
  ASSERT_TRUE(by_v6[1].ok()) << by_v6[1].status();
  EXPECT_TRUE(absl::StrContains((*by_v6[1])[0]->ToString(), "[::1]:"));
}

TEST(ConnectLinksTest, EncryptsWhereAsked) {
  const TlsFiles files = MakeTestCertificates(testing::TempDir(), "all");
  const auto all = ConnectAll(3, [&](ConnectOptions* options) {
    options->tls = files;
    options->transport = Transport::kTcp;
  });
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(all[i].ok()) << all[i].status();
    for (int j = 0; j < i; ++j) {
      EXPECT_TRUE(
          absl::StartsWith((*all[i])[j]->ToString(), "tls to process "));
      ExpectConnected((*all[i])[j].get(), (*all[j])[i].get());
    }
  }
}

TEST(ConnectLinksTest, AnotherAuthorityIsNotAccepted) {
  const TlsFiles left = MakeTestCertificates(testing::TempDir(), "left");
  const TlsFiles right = MakeTestCertificates(testing::TempDir(), "right");
  const auto all = ConnectAll(2, [&](ConnectOptions* options) {
    options->tls = options->process == 0 ? left : right;
    options->transport = Transport::kTcp;
  });
  // The connecting side checks a certificate first.
  EXPECT_EQ(all[1].status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(absl::StrContains(all[1].status().message(),
                                "TLS: its certificate is not accepted: "))
      << all[1].status();
  EXPECT_EQ(all[0].status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(absl::StrContains(all[0].status().message(), "process 1 at "))
      << all[0].status();
}

TEST(ConnectLinksTest, NamesTheFileThatCannotBeUsed) {
  MemoryStore store;
  ConnectOptions options = Options(0, 2);
  options.tls = MakeTestCertificates(testing::TempDir(), "one");
  const TlsFiles other = MakeTestCertificates(testing::TempDir(), "other");
  options.tls->key = other.key;
  EXPECT_TRUE(absl::StrContains(ConnectLinks(options, store).status().message(),
                                "cannot use the key " + other.key));
  options.tls->certificate = "/nowhere/node.pem";
  EXPECT_TRUE(absl::StrContains(
      ConnectLinks(options, store).status().message(),
      "cannot use the certificate /nowhere/node.pem: No such file"));
}

// A listener that waits for process 1, and strangers that connect first.
class StrangersTest : public testing::TestWithParam<bool> {
 protected:
  void Start(absl::Duration stranger_timeout) {
    process_0_ = std::thread([this, stranger_timeout] {
      ConnectOptions options = Options(0, 2);
      options.stranger_timeout = stranger_timeout;
      links_0_ = ConnectLinks(options, store_);
    });
    const absl::StatusOr<std::string> text =
        store_.Get("links/0/0", absl::Minutes(1));
    ASSERT_TRUE(text.ok()) << text.status();
    address_ = *ParseAddress(*text);
  }
  base::OwnedFd Connect() {
    base::OwnedFd socket = *(GetParam() ? ConnectUnix(address_.unix_socket)
                                        : ConnectTcp(address_.tcp, 0));
    pollfd entry{socket.get(), POLLOUT, 0};
    EXPECT_EQ(::poll(&entry, 1, 60'000), 1);
    return socket;
  }
  // Returns all bytes that the listener sends until it closes the connection.
  static std::string Hear(const base::OwnedFd& socket) {
    std::string heard;
    char bytes[1000];
    for (;;) {
      pollfd entry{socket.get(), POLLIN, 0};
      EXPECT_EQ(::poll(&entry, 1, 60'000), 1) << "it was not closed";
      const ssize_t got = ::recv(socket.get(), bytes, sizeof(bytes), 0);
      if (got <= 0) return heard;
      heard.append(bytes, got);
    }
  }
  void ExpectProcess1ComesIn() {
    const absl::StatusOr<Links> links = ConnectLinks(Options(1, 2), store_);
    EXPECT_TRUE(links.ok()) << links.status();
    process_0_.join();
    EXPECT_TRUE(links_0_.ok()) << links_0_.status();
  }

  MemoryStore store_;
  Address address_;
  absl::StatusOr<Links> links_0_;
  std::thread process_0_;
};

TEST_P(StrangersTest, AreDroppedWhenTheySayNothing) {
  Start(/*stranger_timeout=*/absl::Milliseconds(50));
  const base::OwnedFd silent = Connect();
  const base::OwnedFd begins = Connect();
  ASSERT_EQ(::send(begins.get(), "TROUPE02", 8, 0), 8);
  EXPECT_EQ(Hear(silent).size(), 40u);
  EXPECT_EQ(Hear(begins).size(), 40u);
  // A trickle: each byte arrives in time, but the message never completes.
  const base::OwnedFd trickles = Connect();
  pollfd entry{trickles.get(), POLLIN | POLLRDHUP, 0};
  int sent = 0;
  while (::send(trickles.get(), "x", 1, MSG_NOSIGNAL) == 1 && ++sent < 95) {
    entry.events = POLLRDHUP;
    if (::poll(&entry, 1, 10) != 0) break;
  }
  EXPECT_LT(sent, 95);
  ExpectProcess1ComesIn();
}

TEST_P(StrangersTest, AreDroppedWhateverTheySay) {
  Start(/*stranger_timeout=*/absl::Minutes(1));
  std::vector<base::OwnedFd> strangers;
  const std::string says[] = {
      "GET / HTTP/1.1\r\nHost: troupe.example\r\nAccept: */*\r\n\r\n" +
          std::string(200, ' '),
      std::string(96, '\0'), std::string(96, '\xff'), Text(5000, 1),
      "TROUPE02" + Text(88, 2)};
  for (const std::string& text : says) {
    strangers.push_back(Connect());
    ::send(strangers.back().get(), text.data(), text.size(), MSG_NOSIGNAL);
    EXPECT_LE(Hear(strangers.back()).size(), 40u);
  }
  for (int i = 0; i < 100; ++i) Connect();  // and closes at once
  ExpectProcess1ComesIn();
}

TEST_P(StrangersTest, DoNotHoldUpTheJob) {
  Start(/*stranger_timeout=*/absl::Minutes(1));
  std::vector<base::OwnedFd> strangers;
  for (std::size_t i = 0; i < 2 * kStrangersMax; ++i) {
    strangers.push_back(Connect());
  }
  ExpectProcess1ComesIn();
}

INSTANTIATE_TEST_SUITE_P(Sockets, StrangersTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Unix" : "Tcp";
                         });

TEST(AddressTest, IsReadAsItWasWritten) {
  Address address;
  address.host_key = "boot-1";
  address.tcp = "[::1]:80";
  EXPECT_EQ(FormatAddress(address), "boot-1 [::1]:80 -");
  const absl::StatusOr<Address> read = ParseAddress("boot-1 [::1]:80 -");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(FormatAddress(*read), FormatAddress(address));
  for (const char* text : {"", "a b", "a b c d", "a  c", " a b"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseAddress(text).status())) << text;
  }
}

TEST(TransportsTest, RowsAreFoundByNumberAndByName) {
  for (const TransportRule& rule : Transports()) {
    SCOPED_TRACE(rule.name);
    EXPECT_EQ(&RuleOf(rule.transport), &rule);
    EXPECT_EQ(FindTransport(rule.name), &rule);
    EXPECT_EQ(rule.reach.empty(), rule.transport == Transport::kAuto);
    EXPECT_EQ(rule.library.empty(), rule.version == nullptr);
  }
  EXPECT_EQ(FindTransport("pigeon"), nullptr);
  EXPECT_EQ(TransportNames(),
            (std::vector<std::string>{"auto", "shm", "tcp", "mpi"}));
}

TEST(TransportsTest, ThoseWithoutALibraryConnectBySockets) {
  for (const TransportRule& rule : Transports()) {
    SCOPED_TRACE(rule.name);
    ConnectOptions options = Options(0, 1);
    options.transport = rule.transport;
    EXPECT_EQ(options.Validate().ok(), rule.library.empty());
    if (!rule.library.empty()) continue;
    MemoryStore store;
    const absl::StatusOr<PeerLinks> peers = rule.connect(options, store);
    ASSERT_TRUE(peers.ok()) << peers.status();
    EXPECT_EQ(peers->links.size(), 1u);
    EXPECT_FALSE(peers->give_up);
    const absl::StatusOr<std::string> text =
        store.Get("links/0/0", absl::ZeroDuration());
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(ParseAddress(*text)->tcp.empty(),
              rule.transport == Transport::kShm);
    EXPECT_EQ(ParseAddress(*text)->unix_socket.empty(), !rule.shares_memory);
  }
}

TEST(HostKeyTest, IsTheSameForAllOfThisHost) {
  EXPECT_EQ(HostKey(), HostKey());
  EXPECT_GT(HostKey().size(), 36u);
}

TEST(MemoryStoreTest, GetWaitsForSet) {
  MemoryStore store;
  EXPECT_EQ(store.Get("key", absl::ZeroDuration()).status(),
            absl::DeadlineExceededError(
                "nobody has set \"key\" within 0; set it in another thread"));
  std::thread other([&] { EXPECT_TRUE(store.Set("key", "value").ok()); });
  EXPECT_EQ(*store.Get("key", absl::Minutes(1)), "value");
  other.join();
  EXPECT_TRUE(store.Set("key", "other").ok());
  EXPECT_EQ(*store.Get("key", absl::ZeroDuration()), "other");
}

}  // namespace
}  // namespace troupe::comm

#include "actors/cluster/host_address.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

TEST(HostAddressTest, PublicAddressesAreToldFromPrivateOnes) {
  const char* const open[] = {
      "0.0.0.0",
      "8.8.8.8",
      "9.255.255.255",  // beside the private networks
      "11.0.0.0",
      "100.63.255.255",
      "100.128.0.0",
      "126.255.255.255",
      "128.0.0.0",
      "169.253.255.255",
      "169.255.0.0",
      "172.15.255.255",
      "172.32.0.0",
      "192.167.255.255",
      "192.169.0.0",
      "255.255.255.255",
      "::",
      "::ffff:8.8.8.8",
      "::ffff:0.0.0.0",
      "2001:4860:4860::8888",
      "fbff::1",
      "fe00::1",
      "fec0::1",
      "::2",
  };
  for (const char* host : open) {
    const absl::StatusOr<bool> is_public = IsPublicAddress(host);
    ASSERT_TRUE(is_public.ok()) << is_public.status();
    EXPECT_TRUE(*is_public) << host;
  }
  const char* const closed[] = {
      "127.0.0.1",  "127.255.255.255", "10.0.0.0",    "10.255.0.1",
      "172.16.0.1", "172.31.255.255",  "192.168.0.1", "169.254.1.1",
      "100.64.0.1", "100.127.0.1",     "::1",         "::ffff:10.0.0.1",
      "fe80::1",    "febf::1",         "fc00::1",     "fdff:1::2",
      "localhost",
  };
  for (const char* host : closed) {
    const absl::StatusOr<bool> is_public = IsPublicAddress(host);
    ASSERT_TRUE(is_public.ok()) << is_public.status();
    EXPECT_FALSE(*is_public) << host;
  }
}

TEST(HostAddressTest, AHostThatDoesNotExistIsNamed) {
  const absl::Status status = IsPublicAddress("no such host.invalid").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(status.message(), "host no such host.invalid"))
      << status;
  EXPECT_EQ(OpenConnection("no such host.invalid", 1, absl::Seconds(1))
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

// A bound port of 127.0.0.1, which listens only after a call.
class Port {
 public:
  Port() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(fd_, any, size), 0);
    EXPECT_EQ(::getsockname(fd_, any, &size), 0);
    number_ = ntohs(address.sin_port);
  }
  ~Port() { ::close(fd_); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  void Listen() { EXPECT_EQ(::listen(fd_, 1), 0); }
  int number() const { return number_; }

 private:
  const int fd_;
  int number_ = 0;
};

TEST(HostAddressTest, ConnectionsFindOutWhetherSomebodyListens) {
  Port port;
  const absl::Status before =
      OpenConnection("127.0.0.1", port.number(), absl::Seconds(5)).status();
  EXPECT_EQ(before.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(before.message(), "127.0.0.1:" + std::to_string(port.number()) +
                                  ": Connection refused");
  port.Listen();
  EXPECT_TRUE(
      OpenConnection("127.0.0.1", port.number(), absl::Seconds(5)).ok());
  EXPECT_TRUE(
      OpenConnection("localhost", port.number(), absl::Seconds(5)).ok());
}

TEST(HostAddressTest, ListeningSaysWhyItCannot) {
  Port port;
  port.Listen();
  const absl::Status taken = TryListening("127.0.0.1", port.number());
  EXPECT_EQ(taken.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(taken.message().substr(0, 40),
            "the port is taken by another process; ch");
  EXPECT_EQ(TryListening("127.0.0.2", port.number()), absl::OkStatus());
  // 192.0.2.0/24 is for documentation: no machine has such an address.
  const absl::Status elsewhere = TryListening("192.0.2.1", port.number());
  EXPECT_EQ(elsewhere.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(elsewhere.message().substr(0, 38),
            "this machine does not have the address");
  EXPECT_EQ(TryListening("no such host.invalid", 1).code(),
            absl::StatusCode::kNotFound);
}

TEST(HostAddressTest, IPv6AddressesStandInBrackets) {
  EXPECT_EQ(HostAndPort("n1", 29400), "n1:29400");
  EXPECT_EQ(HostAndPort("127.0.0.1", 7), "127.0.0.1:7");
  EXPECT_EQ(HostAndPort("::1", 29400), "[::1]:29400");
  EXPECT_EQ(HostAndPort("fd00::7", 7), "[fd00::7]:7");
}

TEST(HostAddressTest, AddressesAreNumbersEachOnce) {
  EXPECT_EQ(*AddressesOf("127.0.0.1"), std::vector<std::string>{"127.0.0.1"});
  EXPECT_EQ(AddressesOf("no such host.invalid").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(HostAddressTest, TheWayToTheOwnMachineIsLoopback) {
  EXPECT_EQ(*LocalAddressTo("127.0.0.1", 1), "127.0.0.1");
  EXPECT_EQ(LocalAddressTo("no such host.invalid", 1).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_NE(HostName(), "");
}

}  // namespace
}  // namespace troupe::actors

#include "tools/network/network_hosts.h"

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::network {
namespace {

using testing::HasSubstr;
using testing::Not;

// Whatever the command says.
std::string Said(const std::vector<std::string>& words) {
  const std::string line = absl::StrJoin(words, " ") + " 2>&1";
  std::FILE* pipe = ::popen(line.c_str(), "r");
  std::string text;
  std::array<char, 256> piece;
  while (std::fgets(piece.data(), piece.size(), pipe) != nullptr) {
    text += piece.data();
  }
  ::pclose(pipe);
  return text;
}

class NetworkHostsTest : public testing::Test {
 protected:
  void Start(int hosts, const std::string& rate = "") {
    NetworkOptions options;
    options.hosts = hosts;
    options.rate = rate;
    auto made = NetworkHosts::Make(options);
    if (NetworkHosts::CannotBeHere(made.status())) {
      GTEST_SKIP() << "skipped: " << made.status().message();
    }
    ASSERT_TRUE(made.ok()) << made.status();
    hosts_ = *std::move(made);
  }
  // Returns the result of connecting to a port of `to` that nobody listens on.
  std::string Knock(int from, int to) {
    return Said(hosts_->Command(from, {"timeout 5 bash -c \"</dev/tcp/" +
                                       NetworkHosts::address(to) + "/9\""}));
  }

  std::unique_ptr<NetworkHosts> hosts_;
};

TEST_F(NetworkHostsTest, HostsReachEachOther) {
  Start(3);
  if (hosts_ == nullptr) return;
  EXPECT_THAT(Knock(0, 2), HasSubstr("Connection refused"));
  EXPECT_THAT(Knock(2, 1), HasSubstr("Connection refused"));
}

TEST_F(NetworkHostsTest, NothingElseIsReached) {
  Start(2);
  if (hosts_ == nullptr) return;
  const std::string links = Said(hosts_->Command(0, {"ip -o link"}));
  EXPECT_THAT(links, HasSubstr("eth0"));
  EXPECT_THAT(links, Not(HasSubstr("\n3:")));
  EXPECT_THAT(Said(hosts_->Command(0, {"ip -o route"})),
              Not(HasSubstr("default")));
}

TEST_F(NetworkHostsTest, ACableIsCutAndPluggedIn) {
  Start(2);
  if (hosts_ == nullptr) return;
  ASSERT_TRUE(hosts_->Cut(1).ok());
  EXPECT_THAT(Said(hosts_->Command(1, {"ip -o link show eth0"})),
              HasSubstr("NO-CARRIER"));
  ASSERT_TRUE(hosts_->Heal(1).ok());
  EXPECT_THAT(Knock(0, 1), HasSubstr("Connection refused"));
}

TEST_F(NetworkHostsTest, AThreadEntersAHost) {
  Start(2);
  if (hosts_ == nullptr) return;
  std::string inside;
  std::thread([&] {
    ASSERT_TRUE(hosts_->Enter(1).ok());
    inside = Said({"ip -o address"});
  }).join();
  EXPECT_THAT(inside, HasSubstr(NetworkHosts::address(1) + "/24"));
  EXPECT_THAT(Said({"ip -o address"}),
              Not(HasSubstr(NetworkHosts::address(1) + "/24")));
}

TEST_F(NetworkHostsTest, ARateIsKept) {
  Start(2, "100mbit");
  if (hosts_ == nullptr) return;
  EXPECT_THAT(Said(hosts_->Command(1, {"/usr/sbin/tc qdisc show dev eth0"})),
              HasSubstr("rate 100Mbit"));
}

TEST_F(NetworkHostsTest, NamesWhatCannotBe) {
  NetworkOptions options;
  options.hosts = 17;
  EXPECT_EQ(NetworkHosts::Make(options).status().message(),
            "hosts = 17: must be from 1 to 16");
  Start(1);
  if (hosts_ == nullptr) return;
  options.hosts = 2;
  options.rate = "quick";
  EXPECT_THAT(std::string(NetworkHosts::Make(options).status().message()),
              HasSubstr("quick"));
}

}  // namespace
}  // namespace troupe::network

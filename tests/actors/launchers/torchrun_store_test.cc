#include "actors/launchers/torchrun_store.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

// One end of a connection, read byte by byte. Reads fail at its end.
class Peer {
 public:
  explicit Peer(int fd) : fd_(fd) {}
  ~Peer() { close(fd_); }

  bool Read(void* into, std::size_t bytes) {
    return bytes == 0 ||
           recv(fd_, into, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
  }
  // Writes each byte in a separate packet.
  void Write(const std::string& bytes) {
    for (char byte : bytes) send(fd_, &byte, 1, MSG_NOSIGNAL);
  }
  std::string ReadString() {
    std::uint64_t size = 0;
    if (!Read(&size, 8) || size > 1000) return "?";
    std::string text(size, '\0');
    return Read(&text[0], size) ? text : "?";
  }
  static std::string Bytes(std::uint64_t number) {
    return std::string(reinterpret_cast<const char*>(&number), 8);
  }

 private:
  const int fd_;
};

// Listens, and answers each connection in a separate thread.
class Server {
 public:
  explicit Server(std::function<void(Peer&)> answer)
      : answer_(std::move(answer)) {
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(at);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    accepting_ = std::thread([this] {
      for (int fd; (fd = accept(fd_, nullptr, nullptr)) >= 0;) {
        talking_.emplace_back([this, fd] {
          Peer peer(fd);
          answer_(peer);
        });
      }
    });
  }
  ~Server() {
    shutdown(fd_, SHUT_RDWR);
    accepting_.join();
    for (std::thread& thread : talking_) thread.join();
    close(fd_);
  }
  TorchrunStore Store() const {
    TorchrunStore store;
    store.address = {"127.0.0.1", port_};
    store.key = "troupe/run/0/address";
    return store;
  }

 private:
  const std::function<void(Peer&)> answer_;
  int fd_ = -1;
  int port_ = 0;
  std::thread accepting_;
  std::vector<std::thread> talking_;
};

// Handles the four requests as PyTorch's store does.
class FakeStore {
 public:
  void Answer(Peer& peer) {
    std::uint8_t request = 0;
    std::uint32_t magic = 0;
    if (!peer.Read(&request, 1) || request != 0 || !peer.Read(&magic, 4) ||
        magic != 0x3C85F7CE) {
      return;
    }
    while (peer.Read(&request, 1)) {
      if (request == 1) {
        const std::string key = peer.ReadString();
        const std::string value = peer.ReadString();
        const std::lock_guard<std::mutex> lock(mutex_);
        values_[key] = value;
        changed_.notify_all();
      } else if (request == 6) {
        std::uint64_t keys = 0;
        peer.Read(&keys, 8);
        const std::string key = peer.ReadString();
        std::unique_lock<std::mutex> lock(mutex_);
        ++waiting_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return values_.count(key) > 0; });
        lock.unlock();
        peer.Write(std::string(1, '\0'));
      } else if (request == 3) {
        const std::string key = peer.ReadString();
        const std::lock_guard<std::mutex> lock(mutex_);
        peer.Write(Peer::Bytes(values_[key].size()) + values_[key]);
      } else {
        return;
      }
    }
  }
  void AwaitWaiting(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  int waiting_ = 0;
};

TEST(TorchrunStoreTest, TheOthersLearnTheAddress) {
  FakeStore fake;
  Server server([&](Peer& peer) { fake.Answer(peer); });
  constexpr int kWaiting = 3;
  std::vector<std::string> learned(kWaiting);
  std::vector<std::thread> others;
  for (std::string& address : learned) {
    others.emplace_back([&] {
      const absl::StatusOr<base::HostPort> found = WaitAddress(server.Store());
      address = found.ok() ? found->ToString() : found.status().ToString();
    });
  }
  fake.AwaitWaiting(kWaiting);
  ASSERT_EQ(PublishAddress(server.Store(), {"10.0.0.7", 40112}),
            absl::OkStatus());
  for (std::thread& other : others) other.join();
  for (const std::string& address : learned) {
    EXPECT_EQ(address, "10.0.0.7:40112");
  }
  // A later reader finds the address, too.
  EXPECT_EQ(WaitAddress(server.Store())->port, 40112);
}

TEST(TorchrunStoreTest, NobodyPublishes) {
  Server server([](Peer& peer) {
    char byte;
    while (peer.Read(&byte, 1)) {
    }
  });
  TorchrunStore store = server.Store();
  store.timeout = absl::Milliseconds(20);
  EXPECT_EQ(WaitAddress(store).status(),
            absl::DeadlineExceededError(absl::StrCat(
                "process 0 has not put its address into torchrun's store at ",
                store.address.ToString(), " in 20ms; see what it says")));
  EXPECT_EQ(PublishAddress(store, {"n1", 7}),
            absl::DeadlineExceededError(
                absl::StrCat("torchrun's store at ", store.address.ToString(),
                             " does not answer; let MASTER_ADDR and "
                             "MASTER_PORT be those of torchrun")));
}

TEST(TorchrunStoreTest, NothingListens) {
  TorchrunStore store;
  {
    Server server([](Peer&) {});
    store = server.Store();
  }
  for (const absl::Status& status :
       {PublishAddress(store, {"n1", 7}), WaitAddress(store).status()}) {
    EXPECT_EQ(status, absl::UnavailableError(absl::StrCat(
                          "torchrun's store at ", store.address.ToString(),
                          " cannot be reached: Connection refused; let "
                          "MASTER_ADDR and MASTER_PORT be those of torchrun")));
  }
}

TEST(TorchrunStoreTest, ItHangsUp) {
  Server server([](Peer& peer) {
    char hello[5 + 1];
    peer.Read(hello, sizeof(hello));
  });
  const absl::Status status = WaitAddress(server.Store()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "broke off")) << status;
}

TEST(TorchrunStoreTest, WhatIsNoStore) {
  const std::string huge = std::string(1, '\0') + Peer::Bytes(1ull << 40);
  const std::string no_address = std::string(1, '\0') + Peer::Bytes(4) + "none";
  for (const auto& [answer, said] :
       {std::pair<std::string, std::string>{"HTTP/1.1 400",
                                            "answers a wait with byte 72"},
        {huge, "answers with 1099511627776 bytes"},
        {no_address, "has under troupe/run/0/address: \"none\" is no"}}) {
    Server server([answer = answer](Peer& peer) {
      peer.Write(answer);
      char byte;
      while (peer.Read(&byte, 1)) {
      }
    });
    const absl::Status status = WaitAddress(server.Store()).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), said)) << status;
  }
}

}  // namespace
}  // namespace troupe::actors

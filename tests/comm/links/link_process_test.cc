// Tests links between processes, and what the survivor sees when one dies or
// stops.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "comm/connect/connect_links.h"
#include "comm/memory_store.h"
#include "gtest/gtest.h"
#include "tests/comm/links/link_test_util.h"

namespace troupe::comm {
namespace {

using Clock = std::chrono::steady_clock;

// A child process that ends with the test at the latest.
class Child {
 public:
  explicit Child(const std::function<void()>& run) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    run();
    ::_exit(0);
  }
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void Kill(int signal) const { ASSERT_EQ(::kill(pid_, signal), 0); }
  // Sends SIGSTOP, and returns when the process has stopped.
  void Stop() const {
    Kill(SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
    ASSERT_TRUE(WIFSTOPPED(status));
  }

 private:
  const pid_t pid_;
};

// A store for two processes, which send addresses to each other over sockets.
class PipeStore : public Store {
 public:
  PipeStore() : sockets_(MakeSockets()) {}

  // Chooses the end that this process uses.
  void Choose(bool first) {
    (first ? sockets_.b : sockets_.a).reset();
    mine_ = first ? &sockets_.a : &sockets_.b;
  }
  absl::Status Set(const std::string&, std::string value) override {
    value.resize(kBytes, ' ');
    return ::write(mine_->get(), value.data(), kBytes) == kBytes
               ? absl::OkStatus()
               : absl::InternalError("write");
  }
  absl::StatusOr<std::string> Get(const std::string&,
                                  absl::Duration timeout) override {
    if (timeout == absl::ZeroDuration()) {
      return absl::DeadlineExceededError("it is read once");
    }
    std::string value(kBytes, ' ');
    for (ssize_t at = 0; at < kBytes;) {
      const ssize_t got = ::read(mine_->get(), &value[at], kBytes - at);
      if (got <= 0) return absl::InternalError("read");
      at += got;
    }
    value.erase(value.find_last_not_of(' ') + 1);
    return value;
  }

 private:
  static constexpr ssize_t kBytes = 200;
  SocketPair sockets_;
  base::OwnedFd* mine_ = nullptr;
};

class LinkProcessTest : public testing::TestWithParam<Transport> {
 protected:
  std::unique_ptr<Link> Connect(int process) {
    ConnectOptions options;
    options.process = process;
    options.processes = 2;
    options.token.fill(1);
    options.transport = GetParam();
    store_.Choose(process == 0);
    auto links = ConnectLinks(options, store_);
    if (!links.ok()) ADD_FAILURE() << links.status();
    return std::move(links->at(1 - process));
  }

  // Runs in the child: sends without end.
  void SendForEver() {
    const auto link = Connect(1);
    RecordingSink sink;
    link->SetSink(&sink);
    const std::string text = Text(100'000, 1);
    CountDone done;
    for (int sent = 0;; ++sent) {
      Frame frame;
      frame.bytes = static_cast<std::uint32_t>(text.size());
      link->Send(frame, text.data(), &done);
      Pump({link.get()}, [&] { return done.count + 10 > sent; });
    }
  }
  // Runs in the child: sends back each frame that arrives.
  void Echo() {
    const auto link = Connect(1);
    RecordingSink sink;
    sink.on_take = [&](const Frame& frame) {
      link->Send(frame, sink.last().payload.data(), nullptr,
                 /*copy=*/true);
    };
    link->SetSink(&sink);
    Bell finished;
    PumpWithPoll(
        link.get(), [&] { return sink.losses() > 0; }, &finished);
  }

  PipeStore store_;
  RecordingSink sink_;
};

TEST_P(LinkProcessTest, CarriesFramesBetweenProcesses) {
  const Child child([this] { Echo(); });
  const auto link = Connect(0);
  link->SetSink(&sink_);
  CountDone done;
  for (std::size_t bytes : {0, 48, 4096, 100'000, 1 << 20}) {
    const std::string text = Text(bytes, bytes);
    Frame frame;
    frame.bytes = static_cast<std::uint32_t>(bytes);
    const std::size_t before = sink_.count();
    link->Send(frame, text.data(), &done);
    Bell finished;
    ASSERT_TRUE(PumpWithPoll(
        link.get(), [&] { return sink_.count() > before; }, &finished));
    EXPECT_TRUE(sink_.last().payload == text);
  }
}

TEST_P(LinkProcessTest, HearsOfADeathInTheMiddle) {
  for (const bool asleep : {false, true}) {
    PipeStore fresh;
    store_ = std::move(fresh);
    const Child child([this] { SendForEver(); });
    const auto link = Connect(0);
    RecordingSink sink;
    sink.forget_payloads = true;
    link->SetSink(&sink);
    ASSERT_TRUE(Pump({link.get()}, [&] { return sink.count() >= 100; }));
    child.Kill(SIGKILL);
    const Clock::time_point killed = Clock::now();
    Bell finished;
    const auto lost = [&] { return sink.losses() == 1; };
    ASSERT_TRUE(asleep ? PumpWithPoll(link.get(), lost, &finished)
                       : Pump({link.get()}, lost));
    // It takes less than a second on an idle machine.
    EXPECT_LT(Clock::now() - killed, std::chrono::seconds(10));
    EXPECT_EQ(sink.why().code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(absl::StrContains(sink.why().message(), "process 1 at "));
    CountDone done;
    link->Send(Frame(), nullptr, &done);
    EXPECT_EQ(done.count, 1);
  }
}

TEST_P(LinkProcessTest, DoesNotWaitForOneThatIsStopped) {
  const Child child([this] { Echo(); });
  const auto link = Connect(0);
  link->SetSink(&sink_);
  link->Send(Frame(), nullptr, nullptr);
  ASSERT_TRUE(Pump({link.get()}, [&] { return sink_.count() == 1; }));
  child.Stop();
  const std::string text = Text(1 << 20, 1);
  CountDone done;
  Frame frame;
  frame.bytes = 1 << 20;
  for (int i = 0; i < 64; ++i) link->Send(frame, text.data(), &done);
  while (link->Progress()) {
  }
  EXPECT_LT(done.count, 64);  // the rest waits, in the caller's memory
  EXPECT_EQ(sink_.losses(), 0);
  // The link continues where it stopped.
  child.Kill(SIGCONT);
  sink_.forget_payloads = true;
  Bell finished;
  ASSERT_TRUE(PumpWithPoll(
      link.get(), [&] { return sink_.count() == 65; }, &finished));
  EXPECT_EQ(done.count, 64);
}

TEST_P(LinkProcessTest, SaysToTheOtherProcessWhyItEnds) {
  SocketPair report = MakeSockets();
  const Child child([&] {
    const auto link = Connect(1);
    RecordingSink sink;
    link->SetSink(&sink);
    Pump({link.get()}, [&] { return sink.losses() == 1; });
    const std::string text = sink.why().ToString();
    if (::write(report.b.get(), text.data(), text.size()) < 0) ::_exit(1);
  });
  report.b.reset();
  const auto link = Connect(0);
  link->SetSink(&sink_);
  link->Close(absl::AbortedError("rank 2 has no disk left"));
  std::string heard(1000, '\0');
  const ssize_t got = ::read(report.a.get(), heard.data(), heard.size());
  ASSERT_GT(got, 0);
  heard.resize(got);
  EXPECT_EQ(heard, "ABORTED: rank 2 has no disk left");
}

INSTANTIATE_TEST_SUITE_P(Transports, LinkProcessTest,
                         testing::Values(Transport::kTcp, Transport::kShm),
                         [](const auto& info) {
                           return info.param == Transport::kTcp ? "Tcp" : "Shm";
                         });

}  // namespace
}  // namespace troupe::comm

// The real control plane: several actor systems, TLS over loopback, and garbage
// sent to a port that anyone can reach.

#include "actors/cluster/control_plane.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "actors/cluster/agent.h"
#include "actors/cluster/control_client.h"
#include "actors/cluster/coordinator.h"
#include "actors/supervision/crew.h"
#include "actors/supervision/supervisor.h"
#include "base/files/file_system.h"
#include "base/tls/certificates.h"
#include "gtest/gtest.h"
#include "tests/base/fresh_path.h"

namespace troupe::actors {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(20);

struct Config : caf::actor_system_config {
  Config() {
    AddClusterMessageTypes(*this);
    set("scheduler.max-threads", 2u);
  }
};

// One process of a job, up to joining.
class Process {
 public:
  Process(ClusterOptions options, int number) : options_(std::move(options)) {
    options_.process = number;
  }
  ~Process() {
    client_.reset();
    if (agent_ != nullptr) End(agent_);
    if (options_.process == 0 && coordinator_ != nullptr) End(coordinator_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  absl::Status OpenNetwork() {
    const absl::Status status = actors::OpenNetwork(options_, config_);
    if (status.ok()) system_.emplace(config_);
    return status;
  }
  // Listens as process 0; returns the port.
  absl::StatusOr<int> Listen() {
    const absl::Status status = OpenNetwork();
    if (!status.ok()) return status;
    coordinator_ = system_->spawn(CoordinatorBehavior, options_, gone_,
                                  static_cast<TraceSink*>(nullptr));
    return Publish(*system_, coordinator_, options_);
  }
  absl::Status Reach(absl::Duration timeout = kTimeout) {
    absl::Status status = OpenNetwork();
    if (!status.ok()) return status;
    absl::StatusOr<CoordinatorActor> coordinator =
        Connect(*system_, options_, absl::Now() + timeout);
    if (coordinator.ok()) coordinator_ = *std::move(coordinator);
    return coordinator.status();
  }
  absl::StatusOr<Welcome> Join() {
    client_.emplace(*system_, coordinator_);
    if (options_.process == 0) {
      Welcome offer;
      offer.generation = 1;
      offer.plan = "the plan";
      caf::anon_send(coordinator_, std::move(offer));
    } else {
      agent_ = system_->spawn(
          AgentBehavior, options_, coordinator_, client_->address(),
          static_cast<TraceSink*>(nullptr),
          AgentState::OnEnd([this](const absl::StatusOr<JobResult>& end) {
            end_ = end;
            ended_.Notify();
          }));
    }
    actors::Join join;
    join.member.process = options_.process;
    join.member.host = "here";
    join.member.pid = 100 + options_.process;
    join.nonce = 7 + options_.process;
    join.agent = caf::actor_cast<caf::strong_actor_ptr>(agent_);
    join.processes = options_.processes;
    join.version = version_;
    join.agreement = options_.agreement;
    return client_->Join(join, kTimeout);
  }
  // Waits for the outcome of the job that the agent receives.
  absl::Status AwaitEnd() {
    if (!ended_.WaitForNotificationWithTimeout(kTimeout)) {
      return absl::UnknownError("no end");
    }
    return end_.status();
  }

  ControlClient& client() { return *client_; }
  caf::actor_system& system() { return *system_; }
  CoordinatorActor coordinator() const { return coordinator_; }
  absl::Notification& gone() { return *gone_; }
  void set_version(std::string version) { version_ = std::move(version); }

 private:
  template <typename Handle>
  static void End(const Handle& actor) {
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }

  ClusterOptions options_;
  std::string version_ = "0.1";
  Config config_;
  absl::Notification ended_;
  absl::StatusOr<JobResult> end_ = absl::UnknownError("no end");
  CoordinatorState::Gone gone_ = std::make_shared<absl::Notification>();
  std::optional<caf::actor_system> system_;
  CoordinatorActor coordinator_;
  AgentActor agent_;
  std::optional<ControlClient> client_;
};

// A socket that is connected to a port of this machine.
class RawClient {
 public:
  explicit RawClient(int port)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(
        ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
        0);
  }
  ~RawClient() { ::close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  void Send(const std::string& bytes) {
    (void)::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

 private:
  const int fd_;
};

class ControlPlaneTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = base::FreshPath();
    certificates_ = MakeCertificates("ours");
    options_.processes = 2;
    options_.certificates = certificates_;
    options_.agreement = "train.lr = 0.1\n";
  }
  void TearDown() override {
    base::PosixFileSystem files;
    EXPECT_EQ(files.RemoveAll(folder_), absl::OkStatus());
  }

  base::tls::CertificateFiles MakeCertificates(const std::string& name) {
    const std::string folder = absl::StrCat(folder_, "/", name);
    base::tls::CertificateOptions options;
    options.now = absl::Now();
    auto authority = base::tls::Authority::Make(options);
    EXPECT_TRUE(authority.ok());
    EXPECT_EQ(base::tls::MakePrivateFolder(folder), absl::OkStatus());
    EXPECT_EQ(authority->WriteCertificate(folder), absl::OkStatus());
    EXPECT_EQ(authority->WriteNode(folder, {"localhost"}, options),
              absl::OkStatus());
    return base::tls::CertificatesIn(folder);
  }

  // Makes process 0 of the job, and sets its port in options_ for the others.
  std::unique_ptr<Process> Master() {
    auto process = std::make_unique<Process>(options_, 0);
    const absl::StatusOr<int> port = process->Listen();
    EXPECT_TRUE(port.ok()) << port.status();
    if (port.ok()) options_.master_port = *port;
    return process;
  }
  // Expects that a job of two processes can still begin.
  void ExpectJoins(Process& master) {
    Process other(options_, 1);
    ASSERT_EQ(other.Reach(), absl::OkStatus());
    absl::StatusOr<Welcome> there;
    std::thread joining([&] { there = other.Join(); });
    const absl::StatusOr<Welcome> here = master.Join();
    joining.join();
    ASSERT_TRUE(here.ok()) << here.status();
    ASSERT_TRUE(there.ok()) << there.status();
    EXPECT_EQ(here->members.size(), 2u);
    EXPECT_EQ(there->plan, "the plan");
    EXPECT_EQ(there->members[0].pid, 100);
  }

  std::string folder_;
  base::tls::CertificateFiles certificates_;
  ClusterOptions options_;
};

TEST_F(ControlPlaneTest, ProcessesJoinAndLeaveAddressesForEachOther) {
  const std::unique_ptr<Process> master = Master();
  Process other(options_, 1);
  ASSERT_EQ(other.Reach(), absl::OkStatus());
  absl::StatusOr<std::string> got;
  absl::StatusOr<SupervisorActor> supervisor;
  std::thread there([&] {
    ASSERT_TRUE(other.Join().ok());
    got = other.client().Get("data/0", kTimeout);  // before it is set
    ASSERT_EQ(other.client().Set("data/1", "there"), absl::OkStatus());
    supervisor = other.client().AwaitSupervisor(1, kTimeout);
  });
  ASSERT_TRUE(master->Join().ok());
  EXPECT_EQ(master->client().Set("data/0", "here"), absl::OkStatus());
  EXPECT_EQ(*master->client().Get("data/1", kTimeout), "there");
  // Any actor stands for a supervisor here.
  const caf::actor stand_in = master->system().spawn(
      [](caf::event_based_actor*, int) -> caf::behavior {
        return {[](begin_atom) {}};
      },
      0);
  Muster muster;
  muster.crew = std::make_shared<Crew>();
  muster.crew->ranks.resize(2);
  muster.crew->checkpointers.resize(2);
  muster.supervisor = caf::actor_cast<SupervisorActor>(stand_in);
  caf::anon_send(master->coordinator(), muster);
  there.join();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, "here");
  ASSERT_TRUE(supervisor.ok()) << supervisor.status();
  EXPECT_EQ(caf::actor_cast<caf::actor>(*supervisor)->id(), stand_in->id());
  // The job ends, and the other process receives that.
  JobResult result;
  result.steps = 7;
  caf::anon_send(master->coordinator(), ToMessage(1, result));
  EXPECT_EQ(other.AwaitEnd(), absl::OkStatus());
  EXPECT_TRUE(master->gone().WaitForNotificationWithTimeout(kTimeout));
  caf::anon_send_exit(stand_in, caf::exit_reason::user_shutdown);
}

TEST_F(ControlPlaneTest, AMismatchReachesEveryProcess) {
  struct Case {
    const char* version;
    const char* agreement;
    const char* difference;
  };
  const Case cases[] = {
      {"0.2", "train.lr = 0.1\n", "the version is "},
      {"0.1", "train.lr = 0.2\n", "train.lr is 0."},
  };
  for (const Case& c : cases) {
    options_.processes = 3;
    const std::unique_ptr<Process> master = Master();
    ClusterOptions differs = options_;
    differs.agreement = c.agreement;
    Process alike(options_, 1), other(differs, 2);
    other.set_version(c.version);
    ASSERT_EQ(alike.Reach(), absl::OkStatus());
    ASSERT_EQ(other.Reach(), absl::OkStatus());
    absl::Status of_alike, of_other;
    std::thread one([&] { of_alike = alike.Join().status(); });
    std::thread two([&] { of_other = other.Join().status(); });
    const absl::Status of_master = master->Join().status();
    one.join();
    two.join();
    options_.master_port = 0;
    EXPECT_EQ(of_master.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(absl::StrContains(of_master.message(), c.difference))
        << of_master;
    EXPECT_EQ(of_alike, of_master);
    EXPECT_EQ(of_other, of_master);
  }
}

TEST_F(ControlPlaneTest, AnotherAuthorityIsRefusedAndTheJobGoesOn) {
  const std::unique_ptr<Process> master = Master();
  ClusterOptions theirs = options_;
  theirs.certificates = MakeCertificates("theirs");
  Process stranger(theirs, 1);
  const absl::Status status = stranger.Reach();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << status;
  EXPECT_TRUE(absl::StrContains(status.message(),
                                "must be signed by one authority, here "))
      << status;
  ExpectJoins(*master);
}

TEST_F(ControlPlaneTest, WhoeverSpeaksNoTlsIsRefusedAndTheJobGoesOn) {
  const std::unique_ptr<Process> master = Master();
  ClusterOptions plain = options_;
  plain.insecure = true;
  Process stranger(plain, 1);
  const absl::Status status = stranger.Reach();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << status;
  EXPECT_TRUE(absl::StrContains(status.message(),
                                "one of them speaks TLS, the other does not"))
      << status;
  ExpectJoins(*master);
}

TEST_F(ControlPlaneTest, WithoutCertificatesNothingStarts) {
  options_.certificates = base::tls::CertificatesIn(folder_ + "/nowhere");
  Process process(options_, 1);
  const absl::Status status = process.Reach();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "/nowhere/")) << status;
}

TEST_F(ControlPlaneTest, GarbageInThePortDoesNotEndTheJob) {
  const std::unique_ptr<Process> master = Master();
  std::string random;
  std::uint32_t state = 1;
  for (int i = 0; i < 1 << 20; ++i) {
    random += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  }
  const std::string garbage[] = {
      random,
      random.substr(0, 1000),
      "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
      std::string(1, '\1') + std::string(31, '\0'),  // ends a plain CAF
      // A length of 4 GiB.
      std::string(4, '\0') + "\xff\xff\xff\xff" + std::string(24, '\0'),
      // The beginning of a TLS ClientHello that announces more than follows.
      std::string("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03", 11),
      "",
  };
  // The connections stay open, as an attacker's would.
  std::vector<std::unique_ptr<RawClient>> clients;
  for (const std::string& bytes : garbage) {
    clients.push_back(std::make_unique<RawClient>(options_.master_port));
    clients.back()->Send(bytes);
    RawClient gone(options_.master_port);
    gone.Send(bytes);
  }
  ExpectJoins(*master);
}

TEST_F(ControlPlaneTest, AMasterThatNobodyReachesIsAnErrorInTime) {
  { const std::unique_ptr<Process> master = Master(); }
  Process other(options_, 1);
  const absl::Time start = absl::Now();
  const absl::Status status = other.Reach(absl::Seconds(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  for (const char* part : {"process 1 cannot reach process 0: ",
                           "; start process 0 too, and let firewalls pass"}) {
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
  }
  EXPECT_LT(absl::Now() - start, kTimeout);
}

TEST_F(ControlPlaneTest, WhoeverListensAndSaysNothingIsAnErrorInTime) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(fd, any, size), 0);
  ASSERT_EQ(::listen(fd, 8), 0);
  ASSERT_EQ(::getsockname(fd, any, &size), 0);
  options_.master_port = ntohs(address.sin_port);
  const absl::Time start = absl::Now();
  {
    Process other(options_, 1);
    const absl::Status status = other.Reach(absl::Seconds(1));
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  }
  // The system has ended too, although the handshake was not complete.
  EXPECT_LT(absl::Now() - start, kTimeout);
  ::close(fd);
}

TEST_F(ControlPlaneTest, ALostMasterIsHeardOfAtOnce) {
  std::unique_ptr<Process> master = Master();
  Process other(options_, 1);
  ASSERT_EQ(other.Reach(), absl::OkStatus());
  absl::Status joined;
  std::thread joining([&] { joined = other.Join().status(); });
  master.reset();  // before or after it has received the other's Join
  joining.join();
  EXPECT_EQ(joined.code(), absl::StatusCode::kUnavailable) << joined;
  EXPECT_TRUE(absl::StrContains(joined.message(), "process 0 (127.0.0.1:"))
      << joined;
  EXPECT_EQ(other.AwaitEnd(), joined);
}

TEST_F(ControlPlaneTest, WithoutTlsNoPublicAddress) {
  options_.insecure = true;
  for (const char* host : {"0.0.0.0", "8.8.8.8", "::"}) {
    options_.master_host = host;
    Process process(options_, 0);
    const absl::Status status = process.Listen().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(
        status.message(), absl::StrCat(host, ", which is a public address")))
        << status;
  }
}

TEST_F(ControlPlaneTest, WithoutTlsWhereTheUserSaysSo) {
  options_.insecure = true;
  const std::unique_ptr<Process> master = Master();
  ExpectJoins(*master);
}

TEST_F(ControlPlaneTest, APortThatIsTakenIsNamed) {
  const std::unique_ptr<Process> master = Master();
  Process again(options_, 0);
  const absl::Status status = again.Listen().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(
      status.message(),
      absl::StrCat("cannot listen at 127.0.0.1:", options_.master_port,
                   ": the port is taken by another process; ")))
      << status;
}

// 192.0.2.0/24 is for documentation: no machine has such an address.
TEST_F(ControlPlaneTest, AnAddressOfAnotherMachineIsNamed) {
  options_.master_host = "192.0.2.1";
  Process elsewhere(options_, 0);
  const absl::Status status = elsewhere.Listen().status();
  EXPECT_TRUE(absl::StrContains(
      status.message(),
      absl::StrCat("cannot listen at 192.0.2.1:", options_.master_port,
                   ": this machine does not have the address; ")))
      << status;
}

}  // namespace
}  // namespace troupe::actors

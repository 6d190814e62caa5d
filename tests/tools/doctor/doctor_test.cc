#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/file_system.h"
#include "base/files/owned_fd.h"
#include "base/tls/certificates.h"
#include "gtest/gtest.h"
#include "tools/trainer/commands/certs_command.h"
#include "tools/trainer/doctor/doctor_checks.h"
#include "tools/trainer/doctor/doctor_command.h"
#include "tools/trainer/doctor/doctor_findings.h"
#include "tools/trainer/doctor/doctor_machine.h"
#include "tools/trainer/doctor/doctor_mesh.h"
#include "tools/trainer/doctor/doctor_peer.h"

namespace troupe::tools {
namespace {

using Addresses = std::vector<std::string>;

TEST(DoctorChecks, ANameOfTheMachineItselfIsNoneForOthers) {
  const auto health = [](const std::string& host, const Addresses& addresses,
                         bool for_others) {
    return CheckAddresses(host, addresses, for_others).health;
  };
  EXPECT_EQ(health("n1", {"10.0.0.1"}, true), Health::kOk);
  EXPECT_EQ(health("n1", {"127.0.1.1"}, true), Health::kProblem);
  EXPECT_EQ(health("n1", {"10.0.0.1", "127.0.1.1"}, true), Health::kProblem);
  EXPECT_EQ(health("n1", {"::1"}, true), Health::kProblem);
  EXPECT_EQ(health("n1", {"127.0.1.1"}, false), Health::kWarning);
  EXPECT_EQ(health("localhost", {"127.0.0.1"}, false), Health::kOk);
  EXPECT_EQ(health("localhost", {"127.0.0.1"}, true), Health::kProblem);
  const Finding unknown =
      CheckAddresses("n9", absl::NotFoundError("host n9: unknown"), true);
  EXPECT_EQ(unknown.health, Health::kProblem);
  EXPECT_EQ(unknown.found, "host n9: unknown");
}

// tp varies fastest, so its ranks are neighbours; dp and pp spread.
TEST(DoctorChecks, GroupsOfAMesh) {
  const auto rows = [](const std::string& mesh, const Addresses& hosts,
                       int processes) {
    MeshPlace place = {ParseMesh(mesh).value(), hosts, processes};
    std::string text;
    for (const Finding& row : CheckMesh(place)) {
      absl::StrAppend(&text, row.what, ": ", row.found,
                      row.health == Health::kOk ? "\n" : "!\n");
    }
    return text;
  };
  EXPECT_EQ(rows("tp=2,dp=2", {"n1"}, 1),
            "mesh tp: 2 ranks, in one process: its memory\n"
            "mesh dp: 2 ranks, in one process: its memory\n");
  EXPECT_EQ(rows("dp=2,tp=2,pp=2", {"n1", "n2"}, 2),
            "mesh tp: 2 ranks, in one process: its memory\n"
            "mesh dp: 2 ranks, in processes of one host: shared memory (shm)\n"
            "mesh pp: 2 ranks, on n1, n2: the network (tcp)\n");
  EXPECT_EQ(rows("tp=2", {"n1", "n2"}, 1),
            "mesh tp: 2 ranks, on n1, n2: the network (tcp)!\n");
  EXPECT_EQ(rows("dp=3", {"n1", "n2"}, 1), "mesh: 3 ranks in 2 processes!\n");
  for (const char* wrong : {"", "tp", "tp=0", "ep=2", "tp=2,tp=2", "tp=x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseMesh(wrong).status())) << wrong;
  }
  EXPECT_TRUE(ParseDoctor({"--mesh=tp=2"}).ok());
  EXPECT_FALSE(ParseDoctor({"--mesh=two"}).ok());
}

TEST(DoctorChecks, LimitsAreJudged) {
  EXPECT_EQ(CheckOpenFiles(kNoLimit).health, Health::kOk);
  EXPECT_EQ(CheckOpenFiles(4096).health, Health::kOk);
  EXPECT_EQ(CheckOpenFiles(1024).health, Health::kWarning);
  EXPECT_EQ(CheckOpenFiles(64).health, Health::kProblem);
  EXPECT_EQ(CheckProcesses(1024).health, Health::kOk);
  EXPECT_EQ(CheckProcesses(500).health, Health::kWarning);
  EXPECT_EQ(CheckProcesses(20).health, Health::kProblem);
  EXPECT_EQ(CheckLockedMemory(64 << 10).health, Health::kWarning);
  EXPECT_EQ(CheckLockedMemory(kNoLimit).health, Health::kOk);
}

TEST(DoctorChecks, SharedMemoryNeedsMemoryAndAFileOfIt) {
  constexpr std::uint64_t kGiB = 1 << 30;
  const auto health = [](const absl::Status& file, std::uint64_t memory,
                         std::optional<std::uint64_t> dev_shm) {
    return CheckSharedMemory(file, memory, dev_shm).health;
  };
  EXPECT_EQ(health(absl::OkStatus(), kGiB, kGiB), Health::kOk);
  EXPECT_EQ(health(absl::OkStatus(), kGiB, std::nullopt), Health::kWarning);
  EXPECT_EQ(health(absl::OkStatus(), 1 << 20, kGiB), Health::kProblem);
  EXPECT_EQ(health(absl::PermissionDeniedError("memfd_create"), kGiB, kGiB),
            Health::kProblem);
}

TEST(DoctorChecks, TransportsAreNamedWithOrWithoutTheirLibrary) {
  std::vector<TransportFacts> facts = {
      {"shm", "on this host", {}},
      {"tcp", "to others", {}},
      {"mpi", "where mpirun starts the job", {"Open MPI v4.1.4"}}};
  const Finding with = CheckTransports(facts);
  EXPECT_EQ(with.health, Health::kOk);
  EXPECT_EQ(with.found,
            "shm on this host, tcp to others; mpi where mpirun starts the job: "
            "Open MPI v4.1.4");
  facts[2].library =
      absl::NotFoundError("Open MPI is not here: install openmpi-bin");
  const Finding without = CheckTransports(facts);
  EXPECT_EQ(without.health, Health::kOk);
  EXPECT_EQ(without.found,
            "shm on this host, tcp to others; mpi where mpirun starts the job: "
            "Open MPI is not here: install openmpi-bin");
}

PeerFacts NearPeer() {
  PeerFacts facts;
  facts.version = "1.2.3";
  facts.clock_skew = absl::Milliseconds(-3);
  facts.round_trip = absl::Microseconds(80);
  facts.bytes_per_second = 1e9;
  return facts;
}

std::vector<Health> HealthOf(const absl::StatusOr<PeerFacts>& facts) {
  std::vector<Health> all;
  for (const Finding& each : CheckPeer("n2", "1.2.3", facts)) {
    all.push_back(each.health);
  }
  return all;
}

TEST(DoctorChecks, APeerIsComparedRowByRow) {
  constexpr Health kOk = Health::kOk;
  EXPECT_EQ(HealthOf(NearPeer()), std::vector<Health>(2, kOk));
  PeerFacts facts = NearPeer();
  facts.version = "1.2.4";
  EXPECT_EQ(HealthOf(facts)[0], Health::kProblem);
  facts = NearPeer();
  facts.clock_skew = absl::Seconds(-30);
  EXPECT_EQ(HealthOf(facts)[1], Health::kWarning);
  facts.clock_skew = absl::Hours(2);
  EXPECT_EQ(HealthOf(facts)[1], Health::kProblem);
  EXPECT_EQ(HealthOf(absl::FailedPreconditionError("nobody listens")),
            std::vector<Health>{Health::kWarning});
  EXPECT_TRUE(absl::StrContains(
      CheckPeer("n2", "1", absl::UnauthenticatedError("TLS"))[0].advice,
      "of one authority"));
  EXPECT_EQ(HealthOf(absl::UnavailableError("no route")),
            std::vector<Health>{Health::kProblem});
}

TEST(DoctorChecks, AWayIsFarOrSlowOrNotThere) {
  const Finding near = CheckWay("n1", "n2", NearPeer());
  EXPECT_EQ(near.what, "n1 to n2");
  EXPECT_EQ(near.health, Health::kOk);
  EXPECT_EQ(near.found,
            "80 us there and back, 1000 MB/s by one encrypted connection");
  PeerFacts facts = NearPeer();
  facts.round_trip = absl::Milliseconds(20);
  const Finding far = CheckWay("n1", "n2", facts);
  EXPECT_EQ(far.health, Health::kWarning);
  facts = NearPeer();
  facts.bytes_per_second = 1e6;
  const Finding slow = CheckWay("n1", "n2", facts);
  EXPECT_EQ(slow.health, Health::kWarning);
  EXPECT_NE(far.advice, slow.advice);
  EXPECT_EQ(CheckWay("n1", "n2", absl::UnavailableError("no route")).health,
            Health::kProblem);
}

TEST(DoctorChecks, OfAnotherMachineWhatIsToBeMended) {
  const std::vector<Finding> well = {CheckOpenFiles(kNoLimit)};
  EXPECT_EQ(FormatFindings(CheckPeerMachine("n2", well)),
            "n2 machine  ok       limits, memory, transports, cores, clock, "
            "GPUs\n");
  const std::vector<Finding> ill = {CheckClock(true), CheckOpenFiles(8)};
  const std::vector<Finding> rows = CheckPeerMachine("n2", ill);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].what, "n2 open files");
  EXPECT_EQ(rows[0].health, Health::kProblem);
}

TEST(DoctorChecks, WithoutCertificatesAPortIsCalled) {
  const auto health = [](const absl::Status& reached) {
    return CheckReach("n2", 29400, reached).health;
  };
  EXPECT_EQ(health(absl::FailedPreconditionError("refused")), Health::kOk);
  EXPECT_EQ(health(absl::OkStatus()), Health::kWarning);
  EXPECT_EQ(health(absl::DeadlineExceededError("no answer")), Health::kProblem);
}

TEST(DoctorFindings, TravelAsText) {
  const std::vector<Finding> findings = {
      {"clock", Health::kWarning, "late\tby an hour", "wind\nit up"},
      {"cores", Health::kOk, "2", ""}};
  const auto read = ParseFindings(WriteFindings(findings));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FormatFindings(*read),
            "clock  warning  late by an hour\n"
            "       do: wind it up\n"
            "cores  ok       2\n");
  for (const char* text : {"x", "a\t3\tb\tc", "a\tb\tc\td", "a\t0\tb"}) {
    EXPECT_FALSE(ParseFindings(text).ok()) << text;
  }
}

TEST(DoctorChecks, TheTableSaysWhatToDo) {
  const std::vector<Finding> findings = {
      {"port 29400", Health::kOk, "free here", ""},
      {"clock", Health::kWarning, "late", "wind it up"}};
  EXPECT_EQ(FormatFindings(findings),
            "port 29400  ok       free here\n"
            "clock       warning  late\n"
            "            do: wind it up\n");
  EXPECT_FALSE(HasProblem(findings));
  EXPECT_TRUE(HasProblem({CheckOpenFiles(1)}));
}

TEST(DoctorOptionsTest, AreParsedOrNamed) {
  const auto options =
      ParseDoctor({"--hosts=n1,n2", "--port", "300", "--certs=c"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->hosts, Addresses({"n1", "n2"}));
  EXPECT_EQ(options->port, 300);
  EXPECT_EQ(ParseDoctor({"--port=70000"}).status().message(),
            "--port=70000: must be a number from 1 to 65535");
  EXPECT_EQ(ParseDoctor({"--listen"}).status().message(),
            "doctors show each other certificates; write --listen "
            "--certs=certs");
  EXPECT_EQ(ParseDoctor({"--lisp"}).status().message(),
            "unknown option --lisp; run \"trainer doctor --help\" for a list");
}

int PortOf(const base::OwnedFd& socket) {
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  EXPECT_EQ(
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size),
      0);
  return ntohs(address.sin_port);
}

TEST(DoctorMachine, FindsThePortThatIsTaken) {
  const absl::StatusOr<base::OwnedFd> socket = ListenAt(0);
  ASSERT_TRUE(socket.ok()) << socket.status();
  const int port = PortOf(*socket);
  const Finding finding = CheckPort(port, ListenAt(port).status());
  EXPECT_EQ(finding.health, Health::kProblem);
  EXPECT_TRUE(absl::StrContains(finding.found, "in use")) << finding.found;
}

TEST(DoctorMachine, FindsSomethingOfEverything) {
  const std::vector<Finding> findings = CheckLimits();
  EXPECT_GE(findings.size(), 8u);  // GPUs have rows of their own
  for (const Finding& each : findings) EXPECT_FALSE(each.found.empty());
}

class DoctorPeerTest : public ::testing::Test {
 protected:
  // Makes certificates of a new authority.
  base::tls::CertificateFiles Make(const std::string& name) {
    CertsOptions options;
    options.dir = ::testing::TempDir() + "/" + name;
    EXPECT_TRUE(base::PosixFileSystem().RemoveAll(options.dir).ok());
    const auto made = MakeCerts(options, absl::Now());
    EXPECT_TRUE(made.ok()) << made.status();
    return base::tls::CertificatesIn(options.dir + "/node");
  }

  // Returns what a doctor with `asking` learns from one with `answering`.
  absl::StatusOr<PeerFacts> Ask(const base::tls::CertificateFiles& answering,
                                const base::tls::CertificateFiles& asking) {
    Open(answering);
    return AskDoctor(desk_at_, asking, absl::Seconds(60));
  }

  void Open(const base::tls::CertificateFiles& answering) {
    absl::StatusOr<base::OwnedFd> socket = ListenAt(0);
    ASSERT_TRUE(socket.ok()) << socket.status();
    desk_at_ = {"127.0.0.1", PortOf(*socket)};
    auto desk = DoctorDesk::Open(*std::move(socket), answering, "1.2.3");
    ASSERT_TRUE(desk.ok()) << desk.status();
    desk_ = *std::move(desk);
  }

  base::HostPort desk_at_;
  std::unique_ptr<DoctorDesk> desk_;
};

TEST_F(DoctorPeerTest, TellsVersionClockLatencyAndBandwidth) {
  const auto files = Make("doctor_same");
  const absl::StatusOr<PeerFacts> facts = Ask(files, files);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->version, "1.2.3");
  EXPECT_LT(absl::AbsDuration(facts->clock_skew), absl::Minutes(1));
  EXPECT_GT(facts->round_trip, absl::ZeroDuration());
  EXPECT_GT(facts->bytes_per_second, 0);
}

TEST_F(DoctorPeerTest, TellsOfItsMachineAndOfTheWayToOthers) {
  const auto files = Make("doctor_errand");
  Open(files);
  const auto peer = DoctorPeer::Call(desk_at_, files, absl::Seconds(60));
  ASSERT_TRUE(peer.ok()) << peer.status();
  const auto machine = (*peer)->Machine();
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->size(), CheckLimits().size());
  const auto way = (*peer)->MeasureTo(desk_at_);  // to itself
  ASSERT_TRUE(way.ok()) << way.status();
  EXPECT_EQ(way->version, "1.2.3");
  EXPECT_GT(way->round_trip, absl::ZeroDuration());
  EXPECT_GT(way->bytes_per_second, 0);
  // Nothing listens at port 1.
  const auto none = (*peer)->MeasureTo(base::HostPort{"127.0.0.1", 1});
  EXPECT_TRUE(absl::IsFailedPrecondition(none.status())) << none.status();
  EXPECT_TRUE(absl::StrContains(none.status().message(), "127.0.0.1:1: "))
      << none.status();
}

TEST_F(DoctorPeerTest, ADoctorThatEndsBreaksOffWhatItAnswers) {
  const auto files = Make("doctor_ends");
  Open(files);
  const auto peer = DoctorPeer::Call(desk_at_, files, absl::Seconds(60));
  ASSERT_TRUE(peer.ok()) << peer.status();
  desk_.reset();
  EXPECT_TRUE(absl::IsUnavailable((*peer)->Measure().status()));
}

TEST_F(DoctorPeerTest, AnotherAuthorityIsNoTalk) {
  const absl::StatusOr<PeerFacts> facts =
      Ask(Make("doctor_one"), Make("doctor_other"));
  ASSERT_FALSE(facts.ok());
  EXPECT_FALSE(absl::IsFailedPrecondition(facts.status())) << facts.status();
}

TEST_F(DoctorPeerTest, NobodyListens) {
  int port = 0;
  {
    const absl::StatusOr<base::OwnedFd> socket = ListenAt(0);
    ASSERT_TRUE(socket.ok()) << socket.status();
    port = PortOf(*socket);
  }
  const absl::StatusOr<PeerFacts> facts =
      AskDoctor(base::HostPort{"127.0.0.1", port}, Make("doctor_alone"),
                absl::Seconds(60));
  EXPECT_TRUE(absl::IsFailedPrecondition(facts.status())) << facts.status();
}

std::string RowsOf(const std::vector<Finding>& findings) {
  std::string rows;
  for (const Finding& each : findings) absl::StrAppend(&rows, each.what, "\n");
  return rows;
}

// The hosts are two addresses of this machine; the first counts as this host.
TEST_F(DoctorPeerTest, EveryTwoHostsAreMeasured) {
  Open(Make("doctor_ways"));
  DoctorOptions options;
  options.hosts = {"127.0.0.1", "127.0.0.2", "127.0.0.3"};
  options.certs = ::testing::TempDir() + "/doctor_ways/node";
  options.port = desk_at_.port;
  const std::vector<Finding> findings = Examine(options, "1.2.3");
  EXPECT_EQ(findings[1].found, "a doctor of this host listens there");
  const std::string rows = RowsOf(findings);
  EXPECT_TRUE(absl::EndsWith(rows,
                             "127.0.0.1 to 127.0.0.2\n"
                             "127.0.0.1 to 127.0.0.3\n"
                             "127.0.0.2 to 127.0.0.1\n"
                             "127.0.0.2 to 127.0.0.3\n"
                             "127.0.0.3 to 127.0.0.1\n"
                             "127.0.0.3 to 127.0.0.2\n"))
      << rows;
  for (const char* row : {"127.0.0.2 version\n", "127.0.0.3 clock offset\n"}) {
    EXPECT_TRUE(absl::StrContains(rows, row)) << rows;
  }
}

TEST_F(DoctorPeerTest, WithoutCertificatesItSaysWhatIsLeftOut) {
  Open(Make("doctor_left_out"));
  DoctorOptions options;
  options.hosts = {"127.0.0.1", "127.0.0.2"};
  options.port = desk_at_.port;
  const std::vector<Finding> findings = Examine(options, "1.2.3");
  ASSERT_GE(findings.size(), 2u);
  const Finding& last = findings.back();
  EXPECT_EQ(last.what, "left out");
  EXPECT_TRUE(absl::StrContains(last.advice, "--certs=DIR")) << last.advice;
  EXPECT_EQ(findings[findings.size() - 2].what,
            absl::StrCat("127.0.0.2 port ", options.port));
}

TEST(Doctor, ExaminesThisHost) {
  DoctorOptions options;
  options.hosts = {"localhost"};
  options.certs = ::testing::TempDir() + "/no such folder";
  bool certificates = false;
  for (const Finding& each : Examine(options, "1.2.3")) {
    if (each.what != "certificates") continue;
    certificates = true;
    EXPECT_EQ(each.health, Health::kProblem);
    EXPECT_TRUE(absl::StrContains(each.found, "no such folder")) << each.found;
  }
  EXPECT_TRUE(certificates);
}

}  // namespace
}  // namespace troupe::tools

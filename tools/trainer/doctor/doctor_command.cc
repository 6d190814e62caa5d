#include "tools/trainer/doctor/doctor_command.h"

#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "actors/cluster/host_address.h"
#include "base/check.h"
#include "base/tls/certificate_check.h"
#include "tools/trainer/doctor/doctor_machine.h"
#include "tools/trainer/doctor/doctor_mesh.h"
#include "tools/trainer/doctor/doctor_peer.h"
#include "tools/trainer/terminal/arguments.h"
#include "tools/trainer/terminal/options_reader.h"

namespace troupe::tools {
namespace {

constexpr absl::Duration kPeerTimeout = absl::Seconds(10);
constexpr absl::Duration kReachTimeout = absl::Seconds(3);

constexpr char kHelp[] =
    R"(trainer doctor [--hosts=A,B,...] [--port=N] [--certs=DIR] [--mesh=AXES]
trainer doctor --listen --certs=DIR [--port=N]

Looks whether a job can run here, and says what to do where it cannot: names,
port, certificates, limits of files, threads and locked memory, shared memory,
cores, clock, GPUs: their driver, their libraries, what NCCL takes between them.
Exits with 1 where there is a problem.

Options:
  --hosts=A,B,...  Those of a job, this one too, as --master and certificates
                   name them. Without: this one alone.
  --port=N         Where process 0 would listen; default 29400.
  --certs=DIR      The certificates of this node. Without, other hosts are
                   looked up and called, and nothing is asked of them.
  --mesh=tp=2,dp=4,pp=2
                   Says what the groups of a mesh on these hosts would run over:
                   the memory of a process, shared memory, or the network.
  --processes-per-host=N
                   Processes that would have its ranks, for --mesh; default 1.
  --listen         Answers the doctors of other hosts, at that port, until
                   Ctrl-C. They show each other certificates.

For three hosts, start the first line on n2 and n3, then the second on n1. It
asks both for versions, clocks and limits, and every two of the three measure
latency and bandwidth between them:

  trainer doctor --listen --certs=certs
  trainer doctor --hosts=n1,n2,n3 --certs=certs
)";

// Whether one of the addresses is this machine's.
bool IsHere(const std::vector<std::string>& addresses) {
  return absl::c_any_of(addresses, [](const std::string& address) {
    // The local end of a route to an own address is that address.
    const absl::StatusOr<std::string> from =
        actors::LocalAddressTo(address, /*port=*/1);
    return from.ok() && *from == address;
  });
}

// One examination; its steps are in the order of the findings.
class Examination {
 public:
  Examination(const DoctorOptions& options, const std::string& version)
      : options_(options),
        version_(version),
        certificates_(base::tls::CertificatesIn(options.certs)) {}

  std::vector<Finding> Run() {
    Add({"trainer", Health::kOk, version_, ""});
    ExamineMachine();
    std::vector<std::string> hosts = options_.hosts;
    if (hosts.empty()) hosts = {actors::HostName()};
    for (const std::string& host : hosts) ExamineName(host);
    ExamineMesh(hosts);
    if (options_.certs.empty()) {
      for (const std::string& host : others_) ExamineReach(host);
      if (!others_.empty()) Add(LeftOut());
    } else {
      for (const std::string& host : others_) ExamineHost(host);
      MeasureWays();
    }
    return std::move(findings_);
  }

 private:
  void Add(Finding finding) { findings_.push_back(std::move(finding)); }
  void AddAll(std::vector<Finding> findings) {
    for (Finding& each : findings) Add(std::move(each));
  }
  base::HostPort PortOf(const std::string& host) const {
    return base::HostPort{host, options_.port};
  }

  void ExamineMachine() {
    absl::StatusOr<base::OwnedFd> socket = ListenAt(options_.port);
    const bool listens =
        !socket.ok() && !options_.certs.empty() && DoctorListensHere();
    Add(listens ? Finding{absl::StrCat("port ", options_.port), Health::kOk,
                          "a doctor of this host listens there", ""}
                : CheckPort(options_.port, socket.status()));
    AddAll(CheckLimits());
    answers_ = listens;
    if (options_.certs.empty()) return;
    const absl::Status checked =
        base::tls::CheckCertificates(certificates_, absl::Now());
    Add(CheckCertificateFolder(options_.certs, checked));
    if (!socket.ok() || !checked.ok()) return;
    // Other doctors measure the connection to this one.
    absl::StatusOr<std::unique_ptr<DoctorDesk>> desk =
        DoctorDesk::Open(*std::move(socket), certificates_, version_);
    if (!desk.ok()) return;
    desk_ = *std::move(desk);
    answers_ = true;
  }

  bool DoctorListensHere() const {
    return AskDoctor(PortOf("127.0.0.1"), certificates_, kPeerTimeout).ok();
  }

  void ExamineName(const std::string& host) {
    const absl::StatusOr<std::vector<std::string>> addresses =
        actors::AddressesOf(host);
    Add(CheckAddresses(host, addresses, options_.hosts.size() > 1));
    if (!addresses.ok()) return;
    if (!IsHere(*addresses)) {
      others_.push_back(host);
    } else if (here_.empty()) {
      here_ = host;
    }
  }

  void ExamineMesh(const std::vector<std::string>& hosts) {
    if (options_.mesh.empty()) return;
    MeshPlace place;
    // ParseDoctor() has parsed it before.
    place.mesh = ParseMesh(options_.mesh).value();
    place.hosts = hosts;
    place.processes = options_.processes;
    AddAll(CheckMesh(place));
  }

  void ExamineReach(const std::string& host) {
    Add(CheckReach(
        host, options_.port,
        ReachDoctor(PortOf(host), absl::Now() + kReachTimeout).status()));
  }

  void ExamineHost(const std::string& host) {
    const auto peer =
        DoctorPeer::Call(PortOf(host), certificates_, kPeerTimeout);
    const absl::StatusOr<PeerFacts> facts =
        peer.ok() ? (*peer)->Measure() : peer.status();
    AddAll(CheckPeer(host, version_, facts));
    if (!facts.ok()) return;
    AddAll(CheckPeerMachine(host, (*peer)->Machine()));
    ways_.push_back(
        CheckWay(here_.empty() ? actors::HostName() : here_, host, facts));
    doctors_.push_back(host);
  }

  // Adds the findings on connections: from here, then from each other doctor to
  // every host whose doctor answers.
  void MeasureWays() {
    AddAll(std::move(ways_));
    for (const std::string& from : doctors_) {
      const auto peer =
          DoctorPeer::Call(PortOf(from), certificates_, kPeerTimeout);
      std::vector<std::string> to;
      if (answers_ && !here_.empty()) to.push_back(here_);
      for (const std::string& host : doctors_) {
        if (host != from) to.push_back(host);
      }
      for (const std::string& host : to) {
        Add(CheckWay(
            from, host,
            peer.ok() ? (*peer)->MeasureTo(PortOf(host)) : peer.status()));
      }
    }
  }

  const DoctorOptions& options_;
  const std::string& version_;
  const base::tls::CertificateFiles certificates_;
  std::vector<Finding> findings_;
  std::unique_ptr<DoctorDesk> desk_;
  bool answers_ = false;  // whether a doctor answers on this host
  std::string here_;      // this host's name among those of a job
  std::vector<std::string> others_;
  std::vector<Finding> ways_;         // connections from here
  std::vector<std::string> doctors_;  // other hosts whose doctor answers
};

}  // namespace

std::string DoctorHelp() { return kHelp; }

absl::StatusOr<DoctorOptions> ParseDoctor(
    const std::vector<std::string>& arguments) {
  DoctorOptions options;
  OptionsReader reader("doctor");
  reader.List("--hosts=n1,n2", &options.hosts);
  reader.Number("--port=29400", /*min=*/1, /*max=*/65535, &options.port);
  reader.Path("--certs=certs", &options.certs);
  reader.Flag("--listen", &options.listen);
  reader.Text("--mesh=tp=2,dp=4", &options.mesh);
  reader.Number("--processes-per-host=1", /*min=*/1, /*max=*/1024,
                &options.processes);
  Arguments left(arguments);
  TROUPE_ASSIGN_OR_RETURN(options.help, reader.Read(left));
  if (!options.mesh.empty()) {
    TROUPE_RETURN_IF_ERROR(ParseMesh(options.mesh).status());
  }
  if (options.help || !options.listen || !options.certs.empty()) return options;
  return absl::InvalidArgumentError(
      "doctors show each other certificates; write --listen --certs=certs");
}

std::vector<Finding> Examine(const DoctorOptions& options,
                             const std::string& version) {
  return Examination(options, version).Run();
}

absl::Status ListenForDoctors(const DoctorOptions& options,
                              const std::string& version) {
  const base::tls::CertificateFiles files =
      base::tls::CertificatesIn(options.certs);
  TROUPE_RETURN_IF_ERROR(base::tls::CheckCertificates(files, absl::Now()));
  TROUPE_ASSIGN_OR_RETURN(base::OwnedFd socket, ListenAt(options.port));
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<DoctorDesk> desk,
                          DoctorDesk::Open(std::move(socket), files, version));
  absl::Notification().WaitForNotification();  // a signal ends the program
  return absl::OkStatus();
}

}  // namespace troupe::tools

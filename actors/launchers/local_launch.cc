#include "actors/launchers/local_launch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/tls/certificates.h"

namespace troupe::actors {

Variables LauncherVariables(const Placement& placement) {
  Variables set;
  for (const auto& [name, number] :
       {std::pair(kProcessVariable, placement.process),
        std::pair(kProcessesVariable, placement.processes),
        std::pair(kLocalProcessVariable, placement.local_process),
        std::pair(kLocalProcessesVariable, placement.local_processes),
        std::pair(kNodeVariable, placement.node),
        std::pair(kNodesVariable, placement.nodes)}) {
    set.Set(name, absl::StrCat(number));
  }
  set.Set(kMasterVariable, placement.master.ToString());
  if (placement.ranks_per_process > 0) {
    set.Set(kRanksPerProcessVariable,
            absl::StrCat(placement.ranks_per_process));
  }
  return set;
}

void AddTorchVariables(const Placement& placement, Variables& set) {
  for (const auto& [name, number] :
       {std::pair("RANK", placement.process),
        std::pair("WORLD_SIZE", placement.processes),
        std::pair("LOCAL_RANK", placement.local_process),
        std::pair("LOCAL_WORLD_SIZE", placement.local_processes),
        std::pair("GROUP_RANK", placement.node),
        std::pair("GROUP_WORLD_SIZE", placement.nodes)}) {
    set.Set(name, absl::StrCat(number));
  }
  set.Set("MASTER_ADDR", placement.master.host);
  set.Set("MASTER_PORT", absl::StrCat(placement.master.port));
}

std::vector<std::string> EnvironmentWith(const char* const* environment,
                                         const Variables& set) {
  std::vector<std::string> all;
  for (; *environment != nullptr; ++environment) {
    const std::string entry = *environment;
    if (!set.Has(entry.substr(0, entry.find('=')))) all.push_back(entry);
  }
  for (const auto& [name, value] : set.values()) {
    all.push_back(absl::StrCat(name, "=", value));
  }
  return all;
}

absl::Status JobCertificates::Make(absl::Time now) {
  using base::tls::Authority;
  base::tls::CertificateOptions options;
  options.now = now;
  options.validity = absl::Hours(24) * 365;  // a job may run that long
  TROUPE_ASSIGN_OR_RETURN(const Authority authority, Authority::Make(options));
  TROUPE_ASSIGN_OR_RETURN(const std::string authority_pem,
                          authority.CertificatePem());
  TROUPE_ASSIGN_OR_RETURN(
      const base::tls::NodePem node,
      authority.SignNode({"localhost", "127.0.0.1", "::1"}, options));
  for (const auto& [name, pem] : {std::pair("authority.pem", authority_pem),
                                  std::pair("node.pem", node.certificate),
                                  std::pair("node.key", node.key)}) {
    TROUPE_ASSIGN_OR_RETURN(const int fd, base::tls::OpenInMemory(name, pem));
    files_.emplace_back(fd);
  }
  return absl::OkStatus();
}

void JobCertificates::AddTo(Variables& set) const {
  if (!files_.empty()) set.Set(kCertFilesVariable, absl::StrJoin(fds(), ","));
}

std::vector<int> JobCertificates::fds() const {
  std::vector<int> fds;
  for (const base::OwnedFd& file : files_) fds.push_back(file.get());
  return fds;
}

}  // namespace troupe::actors

#include "actors/launchers/launchers.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "actors/launchers/foreign_launchers.h"
#include "actors/launchers/half_launched.h"
#include "base/check.h"
#include "base/tls/certificates.h"

namespace troupe::actors {
namespace {

constexpr char kOwnLauncher[] = "trainer launch";

// Values of options and of our own variables, under the options' names.
class Said {
 public:
  static absl::StatusOr<Said> Of(const Variables& environment,
                                 const Variables& options) {
    Said said;
    for (const auto& [option, variable] :
         {std::pair("--process", kProcessVariable),
          std::pair("--processes", kProcessesVariable),
          std::pair("--master", kMasterVariable),
          std::pair("--certs", kCertsVariable)}) {
      const bool by_option = options.Has(option);
      if (by_option && environment.Has(variable) &&
          options.Text(option) != environment.Text(variable)) {
        return Contradiction(options.Show(option), environment.Show(variable));
      }
      said.values_.Set(option, by_option ? options.Text(option)
                                         : environment.Text(variable));
      said.names_.Set(option, by_option ? option : variable);
    }
    return said;
  }

  static absl::Status Contradiction(const std::string& a,
                                    const std::string& b) {
    return absl::InvalidArgumentError(
        absl::StrCat(a, " contradicts ", b, "; remove one of the two"));
  }

  bool Has(const std::string& option) const { return values_.Has(option); }
  std::string Text(const std::string& option) const {
    return values_.Text(option);
  }
  // Returns the option or variable with its value, as it was set.
  std::string Show(const std::string& option) const {
    return absl::StrCat(names_.Text(option), "=", Text(option));
  }

  // Reads an option into `number`, if set. If `from` ("RANK=2") is not empty,
  // `number` was read from it already, and both must agree.
  absl::Status Read(const std::string& option, const std::string& from,
                    int& number) const {
    if (!Has(option)) return absl::OkStatus();
    Variables named;
    named.Set(names_.Text(option), Text(option));
    TROUPE_ASSIGN_OR_RETURN(const int said, named.Number(names_.Text(option)));
    if (!from.empty() && said != number) {
      return Contradiction(Show(option), from);
    }
    number = said;
    return absl::OkStatus();
  }

 private:
  Variables values_;
  Variables names_;
};

absl::Status ReadMaster(const Said& said, const std::string& from,
                        Placement& placement) {
  if (!said.Has("--master")) return absl::OkStatus();
  const absl::StatusOr<base::HostPort> master =
      base::ParseHostPort(said.Text("--master"));
  if (!master.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(said.Show("--master"), ": ", master.status().message()));
  }
  if (!from.empty() && master->ToString() != placement.master.ToString()) {
    return Said::Contradiction(said.Show("--master"), from);
  }
  placement.meeting = Meeting::kAddress;
  placement.master = *master;
  return absl::OkStatus();
}

// Reads the descriptors of authority, certificate and key: "5,6,7".
absl::Status ReadCertificateFiles(const Variables& environment,
                                  Placement& placement) {
  const std::vector<std::string> files =
      absl::StrSplit(environment.Text(kCertFilesVariable), ',');
  std::vector<std::string> paths;
  for (const std::string& file : files) {
    int number = 0;
    if (absl::SimpleAtoi(file, &number) && number >= 0) {
      paths.push_back(absl::StrCat("/proc/self/fd/", number));
    }
  }
  if (files.size() != 3 || paths.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat(environment.Show(kCertFilesVariable),
                     ": must be three numbers of open files"));
  }
  placement.certificates = {paths[0], paths[1], paths[2]};
  return absl::OkStatus();
}

// Reads the further variables that `trainer launch` sets.
absl::Status ReadOwnLauncher(const Variables& environment,
                             Placement& placement) {
  placement.found_by = kOwnLauncher;
  for (const auto& [name, number] :
       {std::pair(kLocalProcessVariable, &placement.local_process),
        std::pair(kLocalProcessesVariable, &placement.local_processes),
        std::pair(kNodeVariable, &placement.node),
        std::pair(kNodesVariable, &placement.nodes)}) {
    TROUPE_ASSIGN_OR_RETURN(*number, environment.Number(name));
  }
  return environment.Has(kCertFilesVariable)
             ? ReadCertificateFiles(environment, placement)
             : absl::OkStatus();
}

// Returns the error that only one of `process` and `processes` is set.
absl::Status Missing(const Said& said, const ForeignPlacement& found) {
  if (!said.Has("--process") && found.process_from.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(said.Show("--processes"),
                     " is set, but not which of them this is; add --process=I, "
                     "or let a launcher start it"));
  }
  const bool foreign = !found.process_from.empty();
  return absl::InvalidArgumentError(
      absl::StrCat(foreign ? found.process_from : said.Show("--process"),
                   " is set, but not how many processes there are; set ",
                   kProcessesVariable, " or add --processes=N",
                   foreign ? " (1: each process trains by itself)" : ""));
}

// Reads process and processes, which must agree with the launcher's.
absl::Status ReadNumbers(const Said& said, ForeignPlacement& found) {
  Placement& placement = found.placement;
  TROUPE_RETURN_IF_ERROR(
      said.Read("--process", found.process_from, placement.process));
  TROUPE_RETURN_IF_ERROR(
      said.Read("--processes", found.processes_from, placement.processes));
  const bool has_process = said.Has("--process") || !found.process_from.empty();
  const bool has_processes =
      said.Has("--processes") || !found.processes_from.empty();
  if (has_process != has_processes) return Missing(said, found);
  if (placement.processes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(said.Show("--processes"), ": must be at least 1"));
  }
  if (placement.process >= placement.processes) {
    return absl::InvalidArgumentError(absl::StrCat(
        said.Has("--process") ? said.Show("--process") : found.process_from,
        " must be below ", said.Show("--processes"),
        ", since numbers begin with 0"));
  }
  if (!has_process || placement.found_by == kOwnLauncher ||
      !found.processes_from.empty()) {
    return absl::OkStatus();
  }
  // Started by hand, or as pods: assumes that each process has its own node.
  if (placement.found_by.empty()) placement.found_by = "hand";
  placement.node = placement.process;
  placement.nodes = placement.processes;
  return absl::OkStatus();
}

std::string HintOf(const Variables& environment) {
  if (!environment.Has("SLURM_JOB_ID") || environment.Has("SLURM_STEP_ID")) {
    return "";
  }
  const std::string tasks = environment.Text("SLURM_NTASKS");
  if (tasks.empty() || tasks == "1") return "";
  return absl::StrCat(
      "this is a Slurm job's script, which is no task: one process trains; "
      "\"srun trainer train ...\" starts all ",
      tasks);
}

}  // namespace

std::string Placement::ToString() const {
  if (found_by.empty()) return "one process, not launched by anything known";
  std::string text = absl::StrCat("launched by ", found_by, ": process ",
                                  process, " of ", processes);
  if (!node_name.empty()) {
    absl::StrAppend(&text, " on node ", node_name);
  } else if (nodes > 1) {
    absl::StrAppend(&text, " on node ", node, " of ", nodes);
  }
  return text;
}

absl::StatusOr<Placement> FindPlacement(const Variables& environment,
                                        const Variables& options) {
  TROUPE_ASSIGN_OR_RETURN(const Said said, Said::Of(environment, options));
  ForeignPlacement found;
  Placement& placement = found.placement;
  if (environment.Has(kProcessVariable)) {
    TROUPE_RETURN_IF_ERROR(ReadOwnLauncher(environment, placement));
  } else {
    TROUPE_ASSIGN_OR_RETURN(std::optional<ForeignPlacement> foreign,
                            FindForeignLauncher(environment));
    if (foreign) {
      found = *std::move(foreign);
    } else if (!said.Has("--process") || !said.Has("--processes")) {
      TROUPE_RETURN_IF_ERROR(CheckNotHalfLaunched(environment));
    }
  }
  TROUPE_RETURN_IF_ERROR(ReadNumbers(said, found));
  TROUPE_RETURN_IF_ERROR(ReadMaster(said, found.master_from, placement));
  if (said.Has("--certs")) {
    placement.certificates = base::tls::CertificatesIn(said.Text("--certs"));
  }
  if (environment.Has(kRanksPerProcessVariable)) {
    TROUPE_ASSIGN_OR_RETURN(placement.ranks_per_process,
                            environment.Number(kRanksPerProcessVariable));
  }
  if (placement.processes == 1) {
    placement.meeting = Meeting::kNone;
    if (placement.hint.empty()) placement.hint = HintOf(environment);
  } else if (placement.meeting == Meeting::kNone) {
    return absl::InvalidArgumentError(absl::StrCat(
        placement.processes, " processes, and no address where they meet; ",
        found.no_master));
  }
  return placement;
}

}  // namespace troupe::actors

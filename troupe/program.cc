#include "troupe/program.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "actors/launchers/cluster_from_environment.h"
#include "actors/launchers/self_launch.h"
#include "actors/program/run_program.h"
#include "base/check.h"
#include "base/exception_text.h"
#include "base/status_error.h"
#include "troupe/devices/device_line.h"
#include "troupe/devices/device_replica.h"

namespace troupe {
namespace {

absl::Status CheckOptions(const SpawnOptions& options) {
  if (options.mesh.has_value()) {
    TROUPE_RETURN_IF_ERROR(options.mesh->Check());
    if (options.mesh->size() != options.ranks) {
      return absl::InvalidArgumentError(
          absl::StrCat("SpawnOptions.mesh has ", options.mesh->size(),
                       " ranks where SpawnOptions.ranks is ", options.ranks));
    }
  }
  if (options.threads_per_rank < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("SpawnOptions.threads_per_rank is at least 1, not ",
                     options.threads_per_rank));
  }
  if (options.processes < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "SpawnOptions.processes is at least 1, not ", options.processes));
  }
  if (options.processes > 1 && options.cluster.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("SpawnOptions.processes is ", options.processes,
                     " where SpawnOptions.cluster says which of the processes "
                     "this is; leave one of them out"));
  }
  if (options.devices < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "SpawnOptions.devices is at least 1, not ", options.devices));
  }
  if (options.devices > 1 &&
      (options.ranks != 1 || options.processes != 1 || options.cluster)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "SpawnOptions.devices is ", options.devices,
        ", and a rank with several devices is the only one, in one process; "
        "use one rank for each device and a DDP, or leave out ranks and "
        "processes"));
  }
  return absl::OkStatus();
}

// Calls run() on the rank, and ends what it has started in groups.
void RunToEnd(Rank& rank, absl::FunctionRef<void()> run) {
  try {
    run();
  } catch (const base::StatusError& error) {
    rank.Abandon(error.status());
    throw;
  } catch (const std::exception&) {
    rank.Abandon(
        absl::InternalError(base::ExceptionText(std::current_exception())));
    throw;
  }
  rank.Finish();
}

}  // namespace

absl::StatusOr<actors::ProgramSpec> ProgramSpecOf(const Program& program,
                                                  const SpawnOptions& options) {
  TROUPE_RETURN_IF_ERROR(CheckOptions(options));
  actors::ProgramSpec spec;
  spec.ranks = options.ranks * options.devices;
  spec.timeout = options.timeout;
  spec.inline_bytes = options.inline_bytes;
  spec.cluster = options.cluster;
  spec.device = options.device;
  spec.reduction_order = options.reduction_order;
  spec.kernels = options.kernels;
  spec.threads_per_rank = options.threads_per_rank;
  if (program == nullptr) return spec;
  const auto lines = std::make_shared<DeviceLines>(options.devices);
  spec.body = [program, options,
               lines](actors::ProgramRank& self) -> absl::Status {
    const pipeline::Mesh mesh =
        options.mesh.value_or(pipeline::Mesh(options.ranks));
    if (self.rank() >= options.ranks) {
      Rank device(self, self.kernels(), options.seed, mesh);
      RunToEnd(device, [&] { FollowProgram(device, lines->of(self.rank())); });
      return absl::OkStatus();
    }
    // The devices follow what the end of the program's models has them do.
    const absl::Cleanup ended = [&lines] { lines->Close(); };
    Rank rank(self, self.kernels(), options.seed, mesh, lines.get());
    RunToEnd(rank, [&] { program(rank); });
    return absl::OkStatus();
  };
  return spec;
}

absl::Status Spawn(const Program& program, const SpawnOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(actors::ProgramSpec spec,
                          ProgramSpecOf(program, options));
  if (options.processes == 1) return actors::RunProgram(spec);
  TROUPE_RETURN_IF_ERROR(actors::CheckProgram(spec));
  TROUPE_ASSIGN_OR_RETURN(
      actors::SelfLaunch launch,
      actors::SelfLaunch::Begin(options.processes, options.ranks));
  switch (launch.part()) {
    case actors::SelfLaunch::Part::kStarter:
      return launch.RunProcesses();
    case actors::SelfLaunch::Part::kPast:
      return absl::OkStatus();
    case actors::SelfLaunch::Part::kMember:
      break;
  }
  spec.cluster = launch.cluster();
  launch.ReportAndExit(actors::RunProgram(spec));
}

absl::Status Spawn(const Program& program, int ranks) {
  SpawnOptions options;
  options.ranks = ranks;
  return Spawn(program, options);
}

int Main(const Program& program, SpawnOptions options) {
  const auto run = [&]() -> absl::Status {
    const bool joins = actors::SelfLaunch::IsExpected();
    TROUPE_ASSIGN_OR_RETURN(const actors::Placement placement,
                            actors::PlacementFromEnvironment());
    if (!placement.hint.empty() && placement.process == 0) {
      std::fprintf(stderr, "%s\n", placement.hint.c_str());
    }
    const bool launched = placement.processes > 1 && !joins;
    const int processes = launched ? placement.processes : options.processes;
    if (options.ranks == 0) {
      options.ranks = processes * std::max(1, placement.ranks_per_process);
    }
    if (launched) {
      options.processes = 1;
      TROUPE_ASSIGN_OR_RETURN(options.cluster,
                              actors::ClusterOf(placement, options.ranks));
    }
    return Spawn(program, options);
  };
  return ExitCode(run());
}

int ExitCode(const absl::Status& status) {
  if (status.ok()) return 0;
  const std::string text(status.message());
  std::fprintf(stderr, "%s\n", text.c_str());
  return 1;
}

}  // namespace troupe

#include "actors/program/run_program.h"

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/caf/strand_scheduler.h"
#include "actors/caf/thread_supply.h"
#include "actors/planning/calibrate.h"
#include "actors/program/program_device.h"
#include "actors/program/program_links.h"
#include "actors/program/program_strand.h"
#include "actors/protocol/threaded_config.h"
#include "actors/setup/group_makers.h"
#include "base/check.h"
#include "base/cpu_cores.h"
#include "base/exception_text.h"
#include "comm/local/local_group.h"

namespace troupe::actors {

namespace {

int RanksHere(const ProgramSpec& spec) {
  return spec.cluster.has_value() ? spec.cluster->ranks : spec.ranks;
}

// Returns ProgramSpec::inline_bytes, or what is measured in its place, as for
// jobs.
std::int64_t InlineBytes(const ProgramSpec& spec) {
  if (spec.inline_bytes >= 0) return spec.inline_bytes;
  return spec.cluster.has_value() && spec.cluster->processes > 1
             ? kSpanningInlineBytes
             : MeasureInlineBytes(spec.ranks, base::AvailableCores());
}

// Returns the maker of groups of a program in one process.
GroupMaker GroupsHere(const ProgramSpec& spec, bool by_nccl) {
  GroupMaker in_memory = LocalGroupsBy(GroupsOn(spec.device));
  if (!by_nccl) return in_memory;
  return LocalGroupsByNccl(spec.timeout, /*generation=*/0,
                           std::move(in_memory));
}

}  // namespace

absl::Status CheckProgram(const ProgramSpec& spec) {
  if (spec.body == nullptr) {
    return absl::InvalidArgumentError(
        "the program has no function that its ranks could run: pass a "
        "std::function that is not null");
  }
  if (spec.ranks < 1 || spec.ranks > comm::kLocalGroupSizeMax) {
    return absl::InvalidArgumentError(absl::StrCat("a program has 1 to ",
                                                   comm::kLocalGroupSizeMax,
                                                   " ranks, not ", spec.ranks));
  }
  if (spec.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the timeout of waits is positive, not ",
                     absl::FormatDuration(spec.timeout)));
  }
  return GroupsAreOfNccl(spec).status();
}

absl::Status RunProgram(const ProgramSpec& spec) {
  TROUPE_RETURN_IF_ERROR(CheckProgram(spec));
  try {
    TROUPE_ASSIGN_OR_RETURN(const bool by_nccl, GroupsAreOfNccl(spec));
    const std::int64_t inline_bytes = InlineBytes(spec);
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadSupply> threads,
                            StartActorThreads(ProgramThreads(RanksHere(spec))));
    std::unique_ptr<ProgramLinks> links;
    if (spec.cluster.has_value() && spec.cluster->processes > 1) {
      TROUPE_ASSIGN_OR_RETURN(links, ProgramLinks::Open(spec, by_nccl));
    }
    ThreadedConfig config(*threads);
    caf::actor_system system(config);
    const auto context = std::make_shared<ProgramContext>(
        spec, links == nullptr ? GroupsHere(spec, by_nccl) : links->groups());
    context->inline_bytes = inline_bytes;
    context->by_nccl = by_nccl;
    if (links != nullptr) {
      links->Attach(context);
      // The other processes are told why.
      context->refused =
          CheckProgramDevices(spec, context->ranks_before + RanksHere(spec));
    } else {
      TROUPE_RETURN_IF_ERROR(CheckProgramDevices(spec, spec.ranks));
    }
    const std::vector<ProgramActor> ranks = SpawnProgram(system, context);
    if (links != nullptr) {
      links->Wait(*context);
    } else {
      context->outcome.WaitFor(absl::InfiniteDuration());
    }
    return context->outcome.status();
  } catch (...) {
    return absl::InternalError(base::ExceptionText(std::current_exception()));
  }
}

}  // namespace troupe::actors

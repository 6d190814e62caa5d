#include "actors/program/program_device.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/setup/group_makers.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/kernels/open_kernels.h"
#include "pipeline/plan.h"

namespace troupe::actors {
namespace {

// Queue of the program's groups: those of models have the first two
// (rank_device.h, troupe/internal/layer_axes.h).
constexpr nn::Queue kGroupQueue = nn::CommQueue(nn::kCommQueuesMax - 1);

absl::Status Named(const ProgramSpec& spec, const absl::Status& status) {
  if (status.ok()) return status;
  return base::WithFields<&ProgramSpec::device>(base::WithMessage(
      status, absl::StrCat("device = ", spec.device.ToString(), ": ",
                           status.message())));
}

absl::StatusOr<std::unique_ptr<nn::Kernels>> OpenProgramKernels(
    const ProgramSpec& spec, int local_rank,
    std::shared_ptr<nn::KernelChoices> choices) {
  if (!spec.kernels) {
    nn::KernelOptions options;
    options.threads = spec.threads_per_rank;
    options.choices = std::move(choices);
    absl::StatusOr<std::unique_ptr<nn::Kernels>> kernels =
        nn::OpenKernels(spec.device.ForRank(local_rank), options);
    if (!kernels.ok()) return Named(spec, kernels.status());
    return kernels;
  }
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<nn::Kernels> kernels, spec.kernels());
  const nn::Device device = kernels->device();
  const bool fit = spec.device.is_host() ? device.is_host()
                                         : device.type == spec.device.type;
  if (fit) return kernels;
  return Named(spec, absl::InvalidArgumentError(absl::StrCat(
                         "the program's kernels are of ", device.ToString(),
                         "; set device to theirs, for which its groups are "
                         "made")));
}

}  // namespace

absl::Status CheckProgramDevices(const ProgramSpec& spec, int ranks) {
  if (spec.kernels) return absl::OkStatus();
  return Named(spec, nn::CheckDevices(spec.device, ranks));
}

absl::Status ProgramDevice::Open(const ProgramSpec& spec, int local_rank,
                                 std::shared_ptr<nn::KernelChoices> choices) {
  TROUPE_ASSIGN_OR_RETURN(
      kernels_, OpenProgramKernels(spec, local_rank, std::move(choices)));
  queues_ = kernels_->queues();
  if (has_queues()) work_.emplace(*kernels_, kGroupQueue);
  return absl::OkStatus();
}

absl::Status ProgramDevice::SetCalls(
    std::function<void(const base::Event&)> wait, std::function<void()> wakeup,
    bool watch) {
  if (!has_queues()) return absl::OkStatus();
  queues_->SetHostWait(std::move(wait));
  return queues_->SetWakeup(std::move(wakeup), watch);
}

void ProgramDevice::Close() {
  if (has_queues()) {
    queues_->SetWakeup(nullptr, /*watch=*/false).IgnoreError();
    queues_->SetHostWait(nullptr);
  }
  queues_ = nullptr;
  work_.reset();
  kernels_.reset();
}

absl::Status ProgramDevice::Use(
    const std::shared_ptr<comm::Communicator>& group) {
  if (!group->UseDevice(&*work_)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the group moves data in the host's memory where its ranks "
        "compute on ",
        kernels_->device().ToString(), "; set device to that of the kernels"));
  }
  groups_.push_back(group);
  return absl::OkStatus();
}

std::vector<std::shared_ptr<comm::Communicator>> ProgramDevice::WaitingGroups()
    const {
  std::vector<std::shared_ptr<comm::Communicator>> waiting;
  for (const auto& weak : groups_) {
    auto group = weak.lock();
    if (group != nullptr && !group->Waits().empty()) {
      waiting.push_back(std::move(group));
    }
  }
  return waiting;
}

absl::StatusOr<bool> GroupsAreOfNccl(const ProgramSpec& spec) {
  const int processes = spec.cluster.has_value() ? spec.cluster->processes : 1;
  const absl::StatusOr<std::string> order =
      ChooseReductionOrder("reduction_order", spec.reduction_order,
                           {spec.device, spec.ranks, processes});
  if (!order.ok()) {
    return base::WithFields<&ProgramSpec::reduction_order>(order.status());
  }
  return *order == pipeline::kAnyReduction;
}

}  // namespace troupe::actors

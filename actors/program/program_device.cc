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

absl::Status Named(const ProgramSpec& spec, const absl::Status& status) {
  if (status.ok()) return status;
  return base::WithFields<&ProgramSpec::device>(base::WithMessage(
      status, absl::StrCat("device = ", spec.device.ToString(), ": ",
                           status.message())));
}

}  // namespace

absl::Status CheckProgramDevices(const ProgramSpec& spec, int ranks) {
  if (spec.kernels) return absl::OkStatus();
  return Named(spec, nn::CheckDevices(spec.device, ranks));
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

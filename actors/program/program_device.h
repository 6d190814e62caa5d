// The devices of a program's ranks, and whether their groups are NCCL's.
//
//   TROUPE_RETURN_IF_ERROR(CheckProgramDevices(spec, /*ranks=*/2));
//   TROUPE_ASSIGN_OR_RETURN(auto kernels,
//                           OpenProgramKernels(spec, /*local_rank=*/1,
//                                              choices));
//
// Errors: those of nn/kernels/open_kernels.h, with ProgramSpec::device.

#ifndef ACTORS_PROGRAM_PROGRAM_DEVICE_H_
#define ACTORS_PROGRAM_PROGRAM_DEVICE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/program/program_spec.h"
#include "nn/kernels/kernel_choices.h"
#include "nn/kernels/kernels.h"

namespace troupe::actors {

// Checks that this machine has a device for each of `ranks` ranks of this host.
// Kernels that the spec opens itself are not looked for.
absl::Status CheckProgramDevices(const ProgramSpec& spec, int ranks);

// Opens the kernels of the rank that is number `local_rank` of its host.
// `choices`: algorithms that the ranks of this process share.
//   kInvalidArgument: the spec's kernels are of another kind of device.
absl::StatusOr<std::unique_ptr<nn::Kernels>> OpenProgramKernels(
    const ProgramSpec& spec, int local_rank,
    std::shared_ptr<nn::KernelChoices> choices);

// Returns whether NCCL makes the groups of the program's ranks.
//   kInvalidArgument: it would have to, and cannot; names
//     ProgramSpec::reduction_order.
absl::StatusOr<bool> GroupsAreOfNccl(const ProgramSpec& spec);

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_PROGRAM_DEVICE_H_

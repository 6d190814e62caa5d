// The devices of a program's ranks, and whether their groups are NCCL's.
//
//   TROUPE_RETURN_IF_ERROR(CheckProgramDevices(spec, /*ranks=*/2));
//   ProgramDevice device;
//   TROUPE_RETURN_IF_ERROR(device.Open(spec, /*local_rank=*/1, choices));
//   TROUPE_RETURN_IF_ERROR(device.SetCalls(wait, wakeup, /*watch=*/true));
//   if (device.has_queues()) TROUPE_RETURN_IF_ERROR(device.Use(group));
//   while (!event.ready()) device.Progress();
//   device.Close();
//
// Errors: those of nn/kernels/open_kernels.h, with ProgramSpec::device.

#ifndef ACTORS_PROGRAM_PROGRAM_DEVICE_H_
#define ACTORS_PROGRAM_PROGRAM_DEVICE_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/engine/queue_work.h"
#include "actors/program/program_spec.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernel_choices.h"
#include "nn/kernels/kernels.h"

namespace troupe::actors {

// Checks that this machine has a device for each of `ranks` ranks of this host.
// Kernels that the spec opens itself are not looked for.
absl::Status CheckProgramDevices(const ProgramSpec& spec, int ranks);

// The device of one rank while its program runs: its kernels and, on a device
// with queues, the queue of the program's groups. The host has kernels alone.
//
// Threads: the rank's strand.
class ProgramDevice {
 public:
  // Opens the kernels of the rank that is number `local_rank` of its host.
  // `choices`: algorithms that the ranks of this process share.
  //   kInvalidArgument: the spec's kernels are of another kind of device.
  absl::Status Open(const ProgramSpec& spec, int local_rank,
                    std::shared_ptr<nn::KernelChoices> choices);
  // Sets the calls of a device with queues: `wait` waits for an event in
  // nn::Synchronize(), `wakeup` says that Progress() has something to do.
  // `watch`: nn::DeviceQueues::SetWakeup().
  absl::Status SetCalls(std::function<void(const base::Event&)> wait,
                        std::function<void()> wakeup, bool watch);
  // Releases the kernels. Calls after the first do nothing.
  void Close();

  const std::shared_ptr<nn::Kernels>& kernels() const { return kernels_; }
  bool has_queues() const { return queues_ != nullptr; }
  // Drives the device's queues. Returns whether any has made progress.
  bool Progress() { return has_queues() && queues_->Progress(); }

  // Makes the collectives of `group` work in the device's queue.
  //   kFailedPrecondition: the group's data are in the host's memory.
  absl::Status Use(const std::shared_ptr<comm::Communicator>& group);
  // Returns an event that completes when the device has made all groups.
  base::Event RecordGroups() { return work_->Record(); }
  // Returns the groups of Use() with a collective that waits for peers.
  std::vector<std::shared_ptr<comm::Communicator>> WaitingGroups() const;

 private:
  std::shared_ptr<nn::Kernels> kernels_;
  nn::DeviceQueues* queues_ = nullptr;  // null: the device has none
  std::optional<QueueWork> work_;       // queue of the program's groups
  std::vector<std::weak_ptr<comm::Communicator>> groups_;
};

// Returns whether NCCL makes the groups of the program's ranks.
//   kInvalidArgument: it would have to, and cannot; names
//     ProgramSpec::reduction_order.
absl::StatusOr<bool> GroupsAreOfNccl(const ProgramSpec& spec);

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_PROGRAM_DEVICE_H_

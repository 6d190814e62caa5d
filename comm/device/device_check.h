// Checks whether a rank of a group of devices can run a collective.
//
//   TROUPE_RETURN_IF_ERROR(CheckOnDevice(collective, rank, /*size=*/2));
//
// Threads: any.

#ifndef COMM_DEVICE_DEVICE_CHECK_H_
#define COMM_DEVICE_DEVICE_CHECK_H_

#include "absl/status/status.h"
#include "comm/communicator.h"

namespace troupe::comm::internal {

// CheckCollective() for ranges in the memory of a device.
//   kUnimplemented: a reduce_update: devices reduce, and update afterwards.
absl::Status CheckOnDevice(const Collective& collective, int rank, int size);

}  // namespace troupe::comm::internal

#endif  // COMM_DEVICE_DEVICE_CHECK_H_

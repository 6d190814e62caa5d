// Calls ReplicaUpdate::Apply(), a user's code, for the groups that fuse it with
// a reduction.
//
//   TROUPE_RETURN_IF_ERROR(ApplyCaught(update, /*begin=*/0, sum));
//
// Threads: those of ReplicaUpdate::Apply().

#ifndef COMM_APPLY_UPDATE_H_
#define COMM_APPLY_UPDATE_H_

#include <cstdint>
#include <exception>

#include "absl/status/status.h"
#include "base/exception_text.h"
#include "comm/replica_update.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm::internal {

// Returns the result of `update`; an exception becomes kInternal with its text.
inline absl::Status ApplyCaught(ReplicaUpdate& update, std::int64_t begin,
                                const nn::Tensor& sum) {
  try {
    return update.Apply(begin, sum);
  } catch (...) {
    return absl::InternalError(base::ExceptionText(std::current_exception()));
  }
}

}  // namespace troupe::comm::internal

#endif  // COMM_APPLY_UPDATE_H_

// The two steps of a ReplicaUpdate in the groups that fuse it with a reduction:
// one rank calls Apply(), a user's code, and the others copy what it has
// updated.
//
//   TROUPE_RETURN_IF_ERROR(ApplyCaught(mine, /*begin=*/0, sum));
//   CopyReplicas(mine, /*begin=*/0, sum.numel(), theirs);
//
// Threads: those of ReplicaUpdate::Apply().

#ifndef COMM_APPLY_UPDATE_H_
#define COMM_APPLY_UPDATE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>

#include "absl/status/status.h"
#include "absl/types/span.h"
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

// Copies `count` elements from element `begin` on of each replica of `from` to
// the same one of `to`, whose replicas have the same dtypes.
inline void CopyReplicas(const ReplicaUpdate& from, std::int64_t begin,
                         std::int64_t count, const ReplicaUpdate& to) {
  const absl::Span<const nn::Tensor> updated = from.replicas();
  const absl::Span<const nn::Tensor> others = to.replicas();
  for (std::size_t i = 0; i < updated.size(); ++i) {
    const std::size_t element_bytes = nn::SizeOf(updated[i].dtype());
    const std::size_t offset = static_cast<std::size_t>(begin) * element_bytes;
    std::memcpy(static_cast<char*>(others[i].raw()) + offset,
                static_cast<const char*>(updated[i].raw()) + offset,
                static_cast<std::size_t>(count) * element_bytes);
  }
}

}  // namespace troupe::comm::internal

#endif  // COMM_APPLY_UPDATE_H_

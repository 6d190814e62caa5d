// Exchanges numbers of the host between ranks, on whatever device they compute.
//
//   TROUPE_ASSIGN_OR_RETURN(const std::vector<std::int64_t> all,
//                           GatherNumbers(rank, group, {steps, layout}));
//   all[2 * r];                                     // steps of rank r
//
// All ranks of the group call it, with equally many numbers.
//
// Errors: those of the group.
// Threads: the rank's own.

#ifndef TROUPE_INTERNAL_GATHER_NUMBERS_H_
#define TROUPE_INTERNAL_GATHER_NUMBERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "troupe/rank.h"

namespace troupe {

// Returns the numbers of all ranks, in their order in the group.
absl::StatusOr<std::vector<std::int64_t>> GatherNumbers(
    Rank& rank, Group& group, absl::Span<const std::int64_t> own);

}  // namespace troupe

#endif  // TROUPE_INTERNAL_GATHER_NUMBERS_H_

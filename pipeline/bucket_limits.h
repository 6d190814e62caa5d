// Gradient bucketing (pipeline/buckets.h) with a limit for each bucket, as
// bucket_cap_mb_list of PyTorch's DDP.
//
//   AssignToBuckets(bytes_in_forward_order, {1 << 20, 8 << 20, 25 << 20});
//   // The first bucket has up to 1 MiB, the second 8, all later ones 25.
//
// Cost: linear.

#ifndef PIPELINE_BUCKET_LIMITS_H_
#define PIPELINE_BUCKET_LIMITS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace troupe::pipeline {

// Does the same as AssignBuckets() with these limits in bytes, of which the
// last one repeats. There is at least one.
std::vector<std::vector<int>> AssignToBuckets(
    absl::Span<const std::int64_t> bytes,
    absl::Span<const std::int64_t> limits);

}  // namespace troupe::pipeline

#endif  // PIPELINE_BUCKET_LIMITS_H_

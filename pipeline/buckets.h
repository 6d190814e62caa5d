// Gradient bucketing as in PyTorch's DDP: assigns parameters to buckets in the
// order in which backward completes their gradients, so that the first
// all-reduce starts early.
//
//   std::vector<std::vector<int>> buckets =
//       AssignBuckets(bytes_in_forward_order, {/*first_bucket_bytes=*/1 << 20,
//                                              /*bucket_bytes=*/25 << 20});
//   // buckets[0] = the last parameters of the forward, in reverse order
//
// A bucket closes before it would exceed its limit; a parameter larger than
// the limit has a bucket of its own. Equal sizes give equal buckets on every
// rank, so the ranks pair their all-reduces without communication.
// Source: Li et al. 2020, arXiv:2006.15704, sec. 3.2 (PyTorch DDP), whose
// default limits these are.

#ifndef PIPELINE_BUCKETS_H_
#define PIPELINE_BUCKETS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace troupe::pipeline {

struct BucketOptions {
  // Limit on the first bucket, small so that its reduction starts early.
  std::int64_t first_bucket_bytes = std::int64_t{1} << 20;
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
};

// `bytes[i]`: size of the i-th parameter in order of first use in the forward.
// Returns the indices i, bucket by bucket; each occurs exactly once.
std::vector<std::vector<int>> AssignBuckets(
    absl::Span<const std::int64_t> bytes, const BucketOptions& options);

}  // namespace troupe::pipeline

#endif  // PIPELINE_BUCKETS_H_

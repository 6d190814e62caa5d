#include "pipeline/buckets.h"

#include <algorithm>
#include <cstddef>

#include "pipeline/bucket_limits.h"

namespace troupe::pipeline {

std::vector<std::vector<int>> AssignBuckets(
    absl::Span<const std::int64_t> bytes, const BucketOptions& options) {
  return AssignToBuckets(bytes,
                         {options.first_bucket_bytes, options.bucket_bytes});
}

std::vector<std::vector<int>> AssignToBuckets(
    absl::Span<const std::int64_t> bytes,
    absl::Span<const std::int64_t> limits) {
  std::vector<std::vector<int>> buckets;
  std::int64_t filled = 0;
  for (int i = static_cast<int>(bytes.size()) - 1; i >= 0; --i) {
    const std::size_t open = std::max<std::size_t>(buckets.size(), 1) - 1;
    const std::int64_t limit = limits[std::min(open, limits.size() - 1)];
    if (buckets.empty() || filled + bytes[i] > limit) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().push_back(i);
    filled += bytes[i];
  }
  return buckets;
}

}  // namespace troupe::pipeline

#include "pipeline/buckets.h"

namespace troupe::pipeline {

std::vector<std::vector<int>> AssignBuckets(
    absl::Span<const std::int64_t> bytes, const BucketOptions& options) {
  std::vector<std::vector<int>> buckets;
  std::int64_t filled = 0;
  for (int i = static_cast<int>(bytes.size()) - 1; i >= 0; --i) {
    const std::int64_t limit =
        buckets.size() <= 1 ? options.first_bucket_bytes : options.bucket_bytes;
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

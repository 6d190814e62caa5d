// Inflates gzip (RFC 1952) in memory, with a limit on the size of the result.
//
//   if (IsGzip(bytes)) {
//     TROUPE_ASSIGN_OR_RETURN(std::vector<uint8_t> plain,
//                             Gunzip(bytes, "labels.gz", /*bytes_max=*/10008));
//   }
//
// A few compressed bytes can stand for gigabytes, so nothing is inflated beyond
// the limit, and memory grows only with the inflated bytes. Several members one
// after another are one text, as in gzip. Checksums are verified.

#ifndef DATA_GZIP_H_
#define DATA_GZIP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace troupe::data {

// Whether `bytes` begin with gzip's magic number.
bool IsGzip(absl::Span<const std::uint8_t> bytes);

// Inflates all of `bytes`. Errors have `name` and the position of the byte.
//   kDataLoss:          corrupt, truncated, or followed by other bytes.
//   kResourceExhausted: it would inflate to more than `bytes_max`.
absl::StatusOr<std::vector<std::uint8_t>> Gunzip(
    absl::Span<const std::uint8_t> bytes, absl::string_view name,
    std::int64_t bytes_max);

// Returns the first `count` inflated bytes, or all if they are fewer. Bytes
// after them are not read.
absl::StatusOr<std::vector<std::uint8_t>> GunzipPrefix(
    absl::Span<const std::uint8_t> bytes, absl::string_view name,
    std::int64_t count);

}  // namespace troupe::data

#endif  // DATA_GZIP_H_

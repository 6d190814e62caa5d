// Inflates gzip (RFC 1952) in memory, with a limit on what comes out.
//
//   if (IsGzip(bytes)) {
//     TROUPE_ASSIGN_OR_RETURN(std::vector<uint8_t> plain,
//                             Gunzip(bytes, "labels.gz", /*bytes_max=*/10008));
//   }
//
// A few compressed bytes can stand for gigabytes, so nothing is inflated beyond
// the limit, and memory grows only with what has come out. Several members one
// after another are one text, as gzip has it. Checksums are verified.

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

// Everything inside `bytes`. Errors name `name` and the byte of it.
//   kDataLoss:          corrupt, truncated, or followed by other bytes.
//   kResourceExhausted: it would inflate to more than `bytes_max`.
absl::StatusOr<std::vector<std::uint8_t>> Gunzip(
    absl::Span<const std::uint8_t> bytes, absl::string_view name,
    std::int64_t bytes_max);

// The first `count` bytes inside, or fewer where there are no more; what comes
// after them is not looked at.
absl::StatusOr<std::vector<std::uint8_t>> GunzipPrefix(
    absl::Span<const std::uint8_t> bytes, absl::string_view name,
    std::int64_t count);

}  // namespace troupe::data

#endif  // DATA_GZIP_H_

// The words that a rank sends to the other processes of an NCCL group before a
// collective: three, gathered by NCCL itself. NCCL does not compare the
// collectives of its ranks, and ranks that start different ones wait for ever.
//
//   std::copy_n(WordsOf({collective}).begin(), kStartWords, mine);
//   const std::vector<std::int64_t> words = Gathered();  // by rank
//   TROUPE_RETURN_IF_ERROR(CompareStarts(/*number=*/7, words));
//
// The words describe the first collective that starts exactly (signature.h),
// and contain a hash of those that start with it. They do not contain the
// counts of an all_to_all with unequal parts.
//
// Threads: any.

#ifndef COMM_NCCL_START_WORDS_H_
#define COMM_NCCL_START_WORDS_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "comm/communicator.h"

namespace troupe::comm::internal {

inline constexpr int kStartWords = 3;

// Returns the words of collectives that start together: one, or more.
std::array<std::int64_t, kStartWords> WordsOf(
    absl::Span<const Collective> collectives);

// Compares `words`, kStartWords of each rank, which describe what it started as
// collective `number` of the group.
//   kFailedPrecondition: a rank differs from the first; names both, and what
//     they started.
absl::Status CompareStarts(std::uint64_t number,
                           absl::Span<const std::int64_t> words);

}  // namespace troupe::comm::internal

#endif  // COMM_NCCL_START_WORDS_H_

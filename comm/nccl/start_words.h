// What a rank tells the other processes of an NCCL group before a collective:
// three words, gathered by NCCL itself. NCCL does not compare what ranks ask of
// it, and ranks that ask for different collectives wait for ever.
//
//   std::copy_n(WordsOf({collective}).begin(), kStartWords, mine);
//   const std::vector<std::int64_t> words = Gathered();  // by rank
//   TROUPE_RETURN_IF_ERROR(CompareStarts(/*number=*/7, words));
//
// The words are exact about the first collective that starts (signature.h), and
// have a hash of those that start with it. What an all_to_all with unequal
// parts sends to whom is not among them.
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

// Of collectives that start together: one, or more.
std::array<std::int64_t, kStartWords> WordsOf(
    absl::Span<const Collective> collectives);

// `words`: kStartWords of each rank, of what it started as collective `number`
// of the group.
//   kFailedPrecondition: a rank differs from the first; names both, and what
//     they started.
absl::Status CompareStarts(std::uint64_t number,
                           absl::Span<const std::int64_t> words);

}  // namespace troupe::comm::internal

#endif  // COMM_NCCL_START_WORDS_H_

#include "comm/nccl/start_words.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/fnv_hash.h"
#include "comm/signature.h"

namespace troupe::comm::internal {
namespace {

using Words = absl::Span<const std::int64_t>;

Words OfRank(Words words, std::size_t rank) {
  return words.subspan(rank * kStartWords, kStartWords);
}

// Returns "all_reduce(sum, f32 x 8) and 2 more with it".
std::string TextOf(Words words) {
  const auto signature = static_cast<std::uint64_t>(words[0]);
  if (!IsSignature(signature)) return "what is no collective";
  const std::string first = Unpack(signature).ToString();
  return words[1] == 1
             ? first
             : absl::StrCat(first, " and ", words[1] - 1, " more with it");
}

}  // namespace

std::array<std::int64_t, kStartWords> WordsOf(
    absl::Span<const Collective> collectives) {
  base::FnvHash hash;
  for (const Collective& collective : collectives) hash.Add(Pack(collective));
  return {static_cast<std::int64_t>(Pack(collectives[0])),
          static_cast<std::int64_t>(collectives.size()),
          static_cast<std::int64_t>(hash.value())};
}

absl::Status CompareStarts(std::uint64_t number, Words words) {
  const Words first = OfRank(words, 0);
  for (std::size_t rank = 1; rank < words.size() / kStartWords; ++rank) {
    const Words other = OfRank(words, rank);
    if (std::equal(first.begin(), first.end(), other.begin())) continue;
    const std::string started = TextOf(first);
    const std::string differs = TextOf(other);
    return absl::FailedPreconditionError(absl::StrCat(
        "the ranks differ in collective ", number,
        " of the group: rank 0 started ", started, ", rank ", rank, " started ",
        differs, started == differs ? ", of which one differs" : ""));
  }
  return absl::OkStatus();
}

}  // namespace troupe::comm::internal

// A rank's report of what it waits for, and for which ranks. Plain data: it is
// a message (messages.h), and the input of the wait-for graph (wait_graph.h).

#ifndef ACTORS_PROTOCOL_RANK_WAITS_H_
#define ACTORS_PROTOCOL_RANK_WAITS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace troupe::actors {

// Limits on a report: number of waits, ranks of each wait, bytes of each text.
inline constexpr std::size_t kRankWaitsMax = 16;
inline constexpr std::size_t kAwaitedRanksMax = 256;
inline constexpr std::size_t kWaitTextMax = 200;

// A wait for a collective, or for a message of another stage.
struct RankWait {
  // "all_reduce(sum, f32 x 1024), collective 7", "the activation of stage 0"
  std::string what;
  // Name of a collective's group, and the collective's number there; empty and
  // -1 for a message.
  std::string group;
  std::int64_t collective = -1;
  // Step that the wait belongs to, from 0; -1: none.
  std::int64_t step = -1;
  // Part of the step: "bucket 1", "loss", "micro-batch 3"; may be empty.
  std::string part;
  // Global ranks that have not joined, as far as this rank knows. If `begun`,
  // all have joined, and these are the members of the group.
  std::vector<std::int32_t> ranks;
  bool begun = false;
  // Time that it has waited so far, by its own clock.
  std::int64_t nanos = 0;
  static constexpr char kName[] = "troupe.rank_wait";
  auto fields() {
    return std::tie(what, group, collective, step, part, ranks, begun, nanos);
  }
};

struct RankWaits {
  std::int32_t generation = 0;
  std::int32_t rank = 0;
  // Activity of a rank that waits for no other: "computing step 5". `busy`:
  // whether it may still come to wait, so that it is asked again.
  std::string doing;
  bool busy = false;
  // Waits of the rank, the longest first.
  std::vector<RankWait> waits;
  static constexpr char kName[] = "troupe.rank_waits";
  auto fields() { return std::tie(generation, rank, doing, busy, waits); }
};

}  // namespace troupe::actors

#endif  // ACTORS_PROTOCOL_RANK_WAITS_H_

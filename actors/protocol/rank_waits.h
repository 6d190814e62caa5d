// What a rank says of itself when it is asked what it waits for, and whom it
// waits for. Plain data: a message (messages.h), and what a wait-for graph is
// made of (wait_graph.h).

#ifndef ACTORS_PROTOCOL_RANK_WAITS_H_
#define ACTORS_PROTOCOL_RANK_WAITS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

// Limits on what a rank tells: its first waits, of each the first ranks, and
// bytes of each text.
inline constexpr std::size_t kRankWaitsMax = 16;
inline constexpr std::size_t kAwaitedRanksMax = 256;
inline constexpr std::size_t kWaitTextMax = 200;

// A collective, or a message of another stage.
struct RankWait {
  // "all_reduce(sum, f32 x 1024), collective 7", "the activation of stage 0"
  std::string what;
  // A collective's group, by name, and its number there; else empty, and -1.
  std::string group;
  std::int64_t collective = -1;
  // Counted from 0; -1: of no step.
  std::int64_t step = -1;
  // The part of the step: "bucket 1", "loss", "micro-batch 3"; or empty.
  std::string part;
  // Global ranks that have not come, as far as the rank knows. Where `begun`,
  // all have come, and these are its peers in the work.
  std::vector<std::int32_t> ranks;
  bool begun = false;
  // How long it has waited, by its own clock.
  std::int64_t nanos = 0;
};

struct RankWaits {
  std::int32_t generation = 0;
  std::int32_t rank = 0;
  // What it does where it waits for nobody: "computing step 5". `busy`: it may
  // yet come to wait.
  std::string doing;
  bool busy = false;
  // The oldest first.
  std::vector<RankWait> waits;
};

}  // namespace troupe::actors

#endif  // ACTORS_PROTOCOL_RANK_WAITS_H_

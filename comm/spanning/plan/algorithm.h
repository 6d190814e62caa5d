// Chooses the algorithm for a block of a collective between processes.
//
//   Algorithm way = ChooseAlgorithm({/*tree=*/true, /*targets=*/4,
//                                    /*members=*/4, /*bytes=*/1 << 20});
//
// Both are made of pieces, and differ in the process that computes a piece's
// root:
//
//     exchange  every process that wants the result: 1 step
//     two_step  one process, which sends the result on: 2 steps; the processes
//               take turns, so that each computes an equal, contiguous part
//
// docs/collectives.md has steps and bytes on the wire of each. All processes
// choose the same algorithm, from data that all have.

#ifndef COMM_SPANNING_PLAN_ALGORITHM_H_
#define COMM_SPANNING_PLAN_ALGORITHM_H_

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"

namespace troupe::comm::internal {

enum class Algorithm { kExchange, kTwoStep };

// Returns "exchange", "two_step".
absl::string_view AlgorithmName(Algorithm algorithm);

struct BlockShape {
  bool tree = true;       // a reduction; otherwise a copy of one rank's input
  int targets = 0;        // number of processes that want the result
  int members = 0;        // number of processes of the group
  std::size_t bytes = 0;  // size of the block
};

// Chooses by a table, which tools/bench/collectives --table measures.
// `two_step`, if set, overrides the table, but not for blocks where a second
// step is useless.
Algorithm ChooseAlgorithm(const BlockShape& shape,
                          std::optional<bool> two_step = std::nullopt);

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_PLAN_ALGORITHM_H_

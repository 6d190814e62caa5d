// Which algorithm carries out a block of a collective between processes.
//
//   Algorithm way = ChooseAlgorithm({/*tree=*/true, /*targets=*/4,
//                                    /*members=*/4, /*bytes=*/1 << 20});
//
// Both are made of pieces, and differ only in who computes a piece's root:
//
//     exchange  every process that wants the result does: 1 step
//     two_step  one does, and sends the result on: 2 steps; the processes take
//               turns, so that each computes an equal, contiguous part
//
// docs/collectives.md has steps and bytes on the wire of each. All processes
// choose alike, from what all of them know.

#ifndef COMM_SPANNING_ALGORITHM_H_
#define COMM_SPANNING_ALGORITHM_H_

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"

namespace troupe::comm::internal {

enum class Algorithm { kExchange, kTwoStep };

// "exchange", "two_step".
absl::string_view AlgorithmName(Algorithm algorithm);

struct BlockShape {
  bool tree = true;       // a reduction; otherwise one rank's input is copied
  int targets = 0;        // processes that want the result
  int members = 0;        // processes of the group
  std::size_t bytes = 0;  // of the block
};

// By a table, which tools/bench/collectives --table measures. Where `two_step`
// is set it goes over the table, but not over what needs none.
Algorithm ChooseAlgorithm(const BlockShape& shape,
                          std::optional<bool> two_step = std::nullopt);

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_ALGORITHM_H_

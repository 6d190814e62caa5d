// What a contestant is asked, and how it answers: one line each, as peer.h has
// it. All contestants of a benchmark, peers in Python too, speak this.
//
//   Turn turn;
//   while (ReadTurn(&turn)) {
//     Answer(MedianOfBlocks(turn, [&] { Reduce(turn.bytes); }));
//   }
//
// A turn is cut into blocks; its figure is their median: another program that
// takes a core for a while spoils some blocks and not the figure.

#ifndef TOOLS_BENCH_COLLECTIVES_TURNS_H_
#define TOOLS_BENCH_COLLECTIVES_TURNS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace troupe::bench {

// "BYTES COUNT BLOCKS"
struct Turn {
  std::int64_t bytes = 0;   // 0: the end
  std::int64_t count = 1;   // of one block
  std::int64_t blocks = 1;  // after one to warm up
};

// From the standard input; false at its end.
bool ReadTurn(Turn* turn);
void Answer(double microseconds);

// Microseconds of one `run`.
double MedianOfBlocks(const Turn& turn, absl::FunctionRef<void()> run);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_COLLECTIVES_TURNS_H_

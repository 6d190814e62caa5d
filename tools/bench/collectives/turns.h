// The protocol between the benchmark and a contestant: one line for a turn, and
// one for the answer (peer.h). All contestants use it, including the peers in
// Python.
//
//   Turn turn;
//   while (ReadTurn(&turn)) {
//     Answer(MedianOfBlocks(turn, [&] { Reduce(turn.bytes); }));
//   }
//
// A turn is divided into blocks, and its figure is their median: a program that
// takes a core for a while then spoils some blocks, but not the figure.

#ifndef TOOLS_BENCH_COLLECTIVES_TURNS_H_
#define TOOLS_BENCH_COLLECTIVES_TURNS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace troupe::bench {

// A turn, written as the line "BYTES COUNT BLOCKS".
struct Turn {
  std::int64_t bytes = 0;   // 0 ends the contestant
  std::int64_t count = 1;   // number of runs in one block
  std::int64_t blocks = 1;  // number of blocks after one to warm up
};

// Reads a turn from the standard input; returns false at its end.
bool ReadTurn(Turn* turn);
void Answer(double microseconds);

// Returns the time of one `run` in microseconds.
double MedianOfBlocks(const Turn& turn, absl::FunctionRef<void()> run);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_COLLECTIVES_TURNS_H_

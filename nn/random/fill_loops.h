// Loops that make many draws at once, compiled once for each instruction set;
// the numbers are the same in each. FillBits32() and FillUniformF32() of
// philox.h use them.
//
//   for (const FillLoops* loops : AvailableFillLoops()) {
//     loops->bits({key.words, first_block, step, position, path}, words, 64);
//   }

#ifndef NN_RANDOM_FILL_LOOPS_H_
#define NN_RANDOM_FILL_LOOPS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::nn {

// Start of a run of draws: key and counter of its first block.
struct FirstDraw {
  std::array<std::uint32_t, 2> key;
  std::uint32_t block, step, position, path;
};

struct FillLoops {
  const char* name;
  void (*bits)(const FirstDraw& first, std::uint32_t* words, std::size_t count);
  // Writes low + scale * (the upper 24 bits of a word), rounded once to f32.
  void (*uniform)(const FirstDraw& first, double low, double scale,
                  float* values, std::size_t count);
};

// Returns the loops that this CPU can run; the fastest comes last.
const std::vector<const FillLoops*>& AvailableFillLoops();

// Each of them requires a CPU with its instructions.
const FillLoops& PlainFillLoops();
const FillLoops& Avx2FillLoops();
const FillLoops& Avx512FillLoops();

}  // namespace troupe::nn

#endif  // NN_RANDOM_FILL_LOOPS_H_

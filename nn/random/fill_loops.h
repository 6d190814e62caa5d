// Many draws at once, compiled once for each instruction set; the numbers are
// the same in each. Behind FillBits32() and FillUniformF32() of philox.h.
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

// Where a run of draws begins: key and counter of its first block.
struct FirstDraw {
  std::array<std::uint32_t, 2> key;
  std::uint32_t block, step, position, path;
};

struct FillLoops {
  const char* name;
  void (*bits)(const FirstDraw& first, std::uint32_t* words, std::size_t count);
  // low + scale * (the upper 24 bits of a word), rounded once to f32.
  void (*uniform)(const FirstDraw& first, double low, double scale,
                  float* values, std::size_t count);
};

// Those whose instructions this CPU has; the fastest comes last.
const std::vector<const FillLoops*>& AvailableFillLoops();

// Only for a CPU with the instructions.
const FillLoops& PlainFillLoops();
const FillLoops& Avx2FillLoops();
const FillLoops& Avx512FillLoops();

}  // namespace troupe::nn

#endif  // NN_RANDOM_FILL_LOOPS_H_

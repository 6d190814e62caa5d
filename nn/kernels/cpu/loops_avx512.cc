#include "nn/kernels/cpu/make_loops.h"

namespace troupe::nn::cpu {

const Loops& Avx512Loops() {
  static constexpr Loops kLoops = MakeLoops("avx512");
  return kLoops;
}

}  // namespace troupe::nn::cpu

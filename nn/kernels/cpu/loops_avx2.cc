#include "nn/kernels/cpu/make_loops.h"

namespace troupe::nn::cpu {

const Loops& Avx2Loops() {
  static constexpr Loops kLoops = MakeLoops("avx2");
  return kLoops;
}

}  // namespace troupe::nn::cpu

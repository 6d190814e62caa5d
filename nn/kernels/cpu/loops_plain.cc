#include "nn/kernels/cpu/make_loops.h"

namespace troupe::nn::cpu {

const Loops& PlainLoops() {
  static constexpr Loops kLoops = MakeLoops("plain");
  return kLoops;
}

}  // namespace troupe::nn::cpu

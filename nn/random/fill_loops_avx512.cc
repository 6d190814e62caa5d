#include "nn/random/philox_lanes.h"

namespace troupe::nn {

const FillLoops& Avx512FillLoops() {
  static constexpr FillLoops kLoops = {"avx512", Bits, Uniform};
  return kLoops;
}

}  // namespace troupe::nn

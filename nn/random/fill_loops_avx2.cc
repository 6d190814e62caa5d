#include "nn/random/philox_lanes.h"

namespace troupe::nn {

const FillLoops& Avx2FillLoops() {
  static constexpr FillLoops kLoops = {"avx2", Bits, Uniform};
  return kLoops;
}

}  // namespace troupe::nn

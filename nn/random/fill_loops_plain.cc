#include "nn/random/philox_lanes.h"

namespace troupe::nn {

const FillLoops& PlainFillLoops() {
  static constexpr FillLoops kLoops = {"plain", Bits, Uniform};
  return kLoops;
}

}  // namespace troupe::nn

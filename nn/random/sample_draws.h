// Positions of the random draws of one layer: sample `i` of a micro-batch draws
// at `first` with position + i, and its element `e` has draw e. The numbers do
// not depend on which rank holds the sample or on how the batch was cut.
//
//   const SampleDraws draws = *ctx.Random(Purpose::kDropout);
//   RandomStream stream(draws.key, draws.At(/*sample=*/3));

#ifndef NN_RANDOM_SAMPLE_DRAWS_H_
#define NN_RANDOM_SAMPLE_DRAWS_H_

#include <cstdint>

#include "nn/random/philox.h"

namespace troupe::nn {

struct SampleDraws {
  RandomKey key;
  RandomPosition first;

  RandomPosition At(std::int64_t sample) const {
    RandomPosition position = first;
    position.position += static_cast<std::uint32_t>(sample);
    return position;
  }
};

}  // namespace troupe::nn

#endif  // NN_RANDOM_SAMPLE_DRAWS_H_

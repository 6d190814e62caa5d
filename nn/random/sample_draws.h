// Where the draws of one layer begin: sample `i` of a micro-batch draws at
// `first` with position + i, element `e` of it has draw e. The same numbers
// whichever rank holds the sample and however the batch was cut.
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

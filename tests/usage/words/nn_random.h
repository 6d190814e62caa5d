// Declares names that the usage comments in nn/random/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_NN_RANDOM_H_
#define TESTS_USAGE_WORDS_NN_RANDOM_H_

#include <cstdint>
#include <vector>

#include "nn/autograd/context.h"
#include "nn/random/philox.h"

namespace troupe::nn::usage {

namespace fill_loops_h {
extern const RandomKey key;
extern const std::uint32_t first_block, step, position, path;
extern std::uint32_t* words;
}  // namespace fill_loops_h

namespace philox_h {
extern const std::uint64_t seed;
}

namespace sample_draws_h {
extern Context& ctx;
}

}  // namespace troupe::nn::usage

#endif  // TESTS_USAGE_WORDS_NN_RANDOM_H_

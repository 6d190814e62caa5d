// What usage in nn/modules/ leaves to its reader.

#ifndef TESTS_USAGE_WORDS_NN_MODULES_H_
#define TESTS_USAGE_WORDS_NN_MODULES_H_

#include "nn/autograd/context.h"
#include "nn/ops/add.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::usage {

extern Context& ctx;
extern const Tensor x;

namespace embedding_h {
extern const Tensor numbers;
}

namespace flatten_h {
extern const Tensor images;
}

namespace module_h {
class Attend;
extern Attend& attend;
extern const Tensor query, memory;
}  // namespace module_h

}  // namespace troupe::nn::usage

#endif  // TESTS_USAGE_WORDS_NN_MODULES_H_

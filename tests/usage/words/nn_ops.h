// What usage in nn/ops/ leaves to its reader.

#ifndef TESTS_USAGE_WORDS_NN_OPS_H_
#define TESTS_USAGE_WORDS_NN_OPS_H_

#include "nn/autograd/context.h"
#include "nn/kernels/window2d.h"
#include "nn/modules/linear.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::ops::usage {

extern Context& ctx;
extern const Tensor x;
extern Parameter *weight, *bias;
extern const Window2d window;
extern nn::Linear& block;

namespace embedding_h {
extern const Tensor tokens;
extern Parameter* table;
}  // namespace embedding_h

namespace flatten_h {
extern const Tensor images;
}

namespace loss_h {
extern const Tensor loss, logits, early_logits, labels;
}

}  // namespace troupe::nn::ops::usage

#endif  // TESTS_USAGE_WORDS_NN_OPS_H_

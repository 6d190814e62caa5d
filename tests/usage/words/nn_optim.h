// Declares names that the usage comments in nn/optim/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_NN_OPTIM_H_
#define TESTS_USAGE_WORDS_NN_OPTIM_H_

#include "base/check.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/var.h"
#include "nn/kernels/kernels.h"
#include "nn/kernels/step_scalars.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/parameter_sums.h"
#include "nn/optim/sgd.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::usage::clip_grad_norm_h {
extern const Var loss;
extern ParameterArena arena;
extern Kernels& kernels;
}  // namespace troupe::nn::usage::clip_grad_norm_h

namespace troupe::nn::usage::optimizer_h {
extern ParameterArena& arena;
extern Kernels& kernels;
extern Tensor scalars;
}  // namespace troupe::nn::usage::optimizer_h

namespace troupe::nn::usage::parameter_sums_h {
extern ParameterSums sums;
extern Kernels& kernels;
extern ParameterArena& arena;
extern const int bucket;
extern const ArenaSlot& slot;
extern const Tensor values;
void Use(const Tensor& squares);
}  // namespace troupe::nn::usage::parameter_sums_h

#endif  // TESTS_USAGE_WORDS_NN_OPTIM_H_

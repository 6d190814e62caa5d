// Declares names that the usage comments in nn/modules/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_NN_MODULES_H_
#define TESTS_USAGE_WORDS_NN_MODULES_H_

#include <iostream>
#include <memory>

#include "nn/autograd/context.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/conv_transpose2d.h"
#include "nn/modules/dropout.h"
#include "nn/modules/embedding.h"
#include "nn/modules/linear.h"
#include "nn/modules/localise.h"
#include "nn/modules/module.h"
#include "nn/modules/norm.h"
#include "nn/modules/pool2d.h"
#include "nn/modules/recompute.h"
#include "nn/modules/sequential.h"
#include "nn/ops/activation.h"
#include "nn/ops/add.h"
#include "nn/ops/reduce.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::usage {

extern Context& ctx;
extern const Tensor x;

namespace freeze_h {
extern std::unique_ptr<Sequential> model;
}

namespace tokens_h {
extern std::unique_ptr<Sequential> model;
}

namespace lambda_h {
extern std::unique_ptr<Sequential> model;
}

namespace summary_h {
extern std::unique_ptr<Sequential> model;
}

namespace to_dtype_h {
extern std::unique_ptr<Sequential> model;
}

namespace batch_norm_h {
extern const Tensor shortcut;
std::unique_ptr<Module> MakeModel();
}  // namespace batch_norm_h

namespace norm_h {
extern const Tensor branch;
}

namespace attention_h {
extern const Tensor memory, padding;
}

namespace net_h {
class Digits;
extern Digits& net;
extern const Tensor images;
}  // namespace net_h

namespace embedding_h {
extern const Tensor numbers;
}

namespace linear_h {
extern Linear &c_fc, &c_proj, &lm_head;
}

namespace dropout_h {
extern Dropout& dropout;
}

namespace localise_h {
extern const std::unique_ptr<Module> model;
extern absl::Status status;
}  // namespace localise_h

namespace flatten_h {
extern const Tensor images;
}

namespace parameter_dtype_h {
extern const std::unique_ptr<Module> model;
}

namespace recompute_h {
extern Module& model;
extern absl::Status status;
}  // namespace recompute_h

namespace module_h {
extern std::unique_ptr<Sequential> model;
class Attend;
extern Attend& attend;
extern const Tensor query, memory;
}  // namespace module_h

}  // namespace troupe::nn::usage

#endif  // TESTS_USAGE_WORDS_NN_MODULES_H_

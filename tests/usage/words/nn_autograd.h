// Declares names that the usage comments in nn/autograd/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_NN_AUTOGRAD_H_
#define TESTS_USAGE_WORDS_NN_AUTOGRAD_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "data/batch.h"
#include "nn/autograd/buffer.h"
#include "nn/autograd/context.h"
#include "nn/autograd/create.h"
#include "nn/autograd/guards.h"
#include "nn/autograd/kv_cache.h"
#include "nn/autograd/parameter.h"
#include "nn/autograd/segment.h"
#include "nn/autograd/sharding.h"
#include "nn/autograd/stashed_tensors.h"
#include "nn/autograd/tape.h"
#include "nn/autograd/var.h"
#include "nn/autograd/var_math.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/ops/loss.h"

namespace troupe::nn::usage {

extern Kernels& kernels;
extern Sequential& model;
extern Tape tape;
extern Context& ctx;
extern Tensor x, y;
extern absl::Status status;

namespace buffer_h {
extern const std::int64_t channels;
extern const Tensor delta;
// Stands for the method of Module.
Buffer& DeclareBuffer(const std::string& name, const Shape& shape,
                      double initial);
}  // namespace buffer_h

namespace context_h {
extern const double flops;
extern const std::uint64_t seed;
extern const std::int64_t step;
struct Batch {
  std::int64_t position;
};
extern const Batch batch;
}  // namespace context_h

namespace kv_cache_h {
extern const Tensor prompt, next;
}

namespace initializer_h {
extern const double bound;
// Stands for the method of Module.
Parameter& Declare(const std::string& name, const Shape& shape,
                   const Initializer& initializer);
}  // namespace initializer_h

namespace parameter_h {
extern const std::int64_t in, out;
extern const double bound;
// Stands for the method of Module.
Parameter& Declare(const std::string& name, const Shape& shape,
                   const Initializer& initializer);
}  // namespace parameter_h

namespace sharding_h {
extern const std::int64_t width;
extern const Initializer init;
extern const std::vector<AxisPlace> places;
extern float *piece, *whole;
// Stands for the method of Module.
Parameter& Declare(const std::string& name, const Shape& shape,
                   const Initializer& initializer);
extern Parameter& norm_weight;
}  // namespace sharding_h

namespace segment_h {
class Block : public Segment {
 public:
  absl::StatusOr<Tensor> Run(Kernels& kernels, Tape& tape, Tensor& x) override;
};
extern const std::vector<Parameter*> parameters;
}  // namespace segment_h

namespace stashed_tensors_h {
void Send(const std::vector<StashedTensor>& stashed);
}

namespace create_h {
extern const std::int64_t T;
}

namespace var_h {
extern const Tensor images, targets;
}

namespace var_math_h {
extern const Var x;
extern const Tensor labels;
}  // namespace var_math_h

namespace tape_h {
extern const Tensor targets;
extern GradientSink& sink;
}  // namespace tape_h

}  // namespace troupe::nn::usage

namespace troupe::nn::init::usage::init_h {
extern Linear &fc1, &fc2;
}

#endif  // TESTS_USAGE_WORDS_NN_AUTOGRAD_H_

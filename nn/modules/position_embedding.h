// Learned positions (Gehring et al. 2017, arXiv:1705.03122; GPT-2's `wpe`):
// adds row t of a table to position t of each sample.
//
//   PositionEmbedding positions(/*rows=*/1024, /*width=*/768);  // weight
//   Tensor y = positions(ctx, x);          // x [N, T, 768], T <= 1024
//
// Default initialisation as in GPT-2: N(0, 0.02).

#ifndef NN_MODULES_POSITION_EMBEDDING_H_
#define NN_MODULES_POSITION_EMBEDDING_H_

#include <cstdint>

#include "nn/modules/module.h"
#include "nn/ops/embedding.h"

namespace troupe::nn {

class PositionEmbedding : public Module {
 public:
  struct Options {
    double init_stddev = 0.02;
    DType dtype = DType::kF32;
  };
  PositionEmbedding(std::int64_t rows, std::int64_t width)
      : PositionEmbedding(rows, width, Options()) {}
  PositionEmbedding(std::int64_t rows, std::int64_t width,
                    const Options& options)
      : weight_(Declare("weight", {rows, width},
                        Initializer::Normal(0, options.init_stddev),
                        options.dtype)) {}

  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::AddPositions(ctx, x, ctx.Use(weight_));
  }

 private:
  Parameter& weight_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_POSITION_EMBEDDING_H_

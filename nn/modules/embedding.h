// A table of vectors, looked up by number (torch.nn.Embedding).
//
//   Embedding tokens(/*rows=*/50257, /*width=*/768);     // weight [50257, 768]
//   Tensor y = tokens(ctx, numbers);         // i64 [N, T] -> [N, T, 768]
//
// Default initialisation as PyTorch's: N(0, 1).

#ifndef NN_MODULES_EMBEDDING_H_
#define NN_MODULES_EMBEDDING_H_

#include <cstdint>

#include "nn/modules/module.h"
#include "nn/ops/embedding.h"

namespace troupe::nn {

class Embedding : public Module {
 public:
  Embedding(std::int64_t rows, std::int64_t width, DType dtype = DType::kF32)
      : weight_(Declare("weight", {rows, width}, Initializer::Normal(0, 1),
                        dtype)) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::Embedding(ctx, x, ctx.Use(weight_));
  }

 private:
  Parameter& weight_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_EMBEDDING_H_

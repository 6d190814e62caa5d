// Learned positions (Gehring et al. 2017, arXiv:1705.03122; GPT-2's `wpe`):
// adds row t of a table to position t of each sample.
//
//   PositionEmbedding positions(/*rows=*/1024, /*width=*/768);  // weight
//   Tensor y = positions(ctx, x);          // x [N, T, 768], T <= 1024
//   positions.set_parallel(true);          // x may be a rank's tokens
//
// Between layers that ranks along "tp" share (nn/modules/linear.h), x may be
// the rank's own tokens, if ranks share these (nn/ops/tokens.h) and
// set_parallel() was called.
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
    const Tensor table = ctx.Use(weight_);
    if (tokens_.size <= 1 || !ctx.ok() || x.shape().rank() < 2) {
      return ops::AddPositions(ctx, x, table);
    }
    // A shape-only forward is made for all ranks: the last one reads furthest.
    const int rank = ctx.shape_only() ? tokens_.size - 1 : tokens_.coord;
    return ops::AddPositions(ctx, x, table, rank * x.dim(1));
  }

  // Whether x may be a rank's own tokens.
  void set_parallel(bool parallel) { parallel_ = parallel; }
  absl::Status Localise(absl::Span<const AxisPlace> places) override {
    if (!parallel_) return absl::OkStatus();
    tokens_ = TokensAlong(places, "tp");
    LocaliseForTokens(weight_, places);
    return absl::OkStatus();
  }

 private:
  Parameter& weight_;
  bool parallel_ = false;
  AxisPlace tokens_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_POSITION_EMBEDDING_H_

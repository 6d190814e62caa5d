// A table of vectors, looked up by number (torch.nn.Embedding).
//
//   Embedding tokens(/*rows=*/50257, /*width=*/768);     // weight [50257, 768]
//   Tensor y = tokens(ctx, numbers);         // i64 [N, T] -> [N, T, 768]
//
// Tensor parallelism: set_parallel(true) lets the ranks along "tp" share the
// rows, in equal, padded pieces (nn/autograd/sharding.h). It has no effect
// until LocaliseModel() (nn/modules/localise.h); y stays whole, or is a rank's
// own tokens if ranks share these, too.
//
// Default initialisation as in PyTorch: N(0, 1). The row of `padding_index`
// begins as zeros, gets no gradient, and so stays zero.

#ifndef NN_MODULES_EMBEDDING_H_
#define NN_MODULES_EMBEDDING_H_

#include <cstdint>
#include <optional>

#include "nn/modules/module.h"
#include "nn/ops/embedding.h"

namespace troupe::nn {

class Embedding : public Module {
 public:
  struct Options {
    std::optional<std::int64_t> padding_index;
    double init_stddev = 1;
    DType dtype = DType::kF32;
  };
  Embedding(std::int64_t rows, std::int64_t width, DType dtype = DType::kF32)
      : Embedding(rows, width, Options{std::nullopt, 1, dtype}) {}
  Embedding(std::int64_t rows, std::int64_t width, const Options& options)
      : weight_(Declare("weight", {rows, width},
                        Initializer::Normal(0, options.init_stddev),
                        options.dtype)),
        padding_index_(options.padding_index) {
    const std::int64_t padding = padding_index_.value_or(-1);
    // Forward() reports an index outside the table.
    if (padding < rows) weight_.init.zero_row = padding;
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    const Tensor table = ctx.Use(weight_);
    if (!weight_.sharding.is_split()) {
      return ops::Embedding(ctx, x, table, padding_index_);
    }
    if (tokens_.size > 1) {
      return ops::PieceEmbeddingOfTokens(ctx, x, table, weight_.global_shape[0],
                                         tokens_, padding_index_);
    }
    return ops::PieceEmbedding(ctx, x, table, weight_.global_shape[0],
                               weight_.sharding.axis, padding_index_);
  }

  // Whether ranks may share the rows.
  void set_parallel(bool parallel) {
    weight_.sharding = parallel ? RowsOfVocabulary() : Sharding();
  }
  absl::Status Localise(absl::Span<const AxisPlace> places) override {
    tokens_ = TokensAlong(places, weight_.sharding.axis);
    return LocaliseParameter(weight_, places);
  }

 private:
  Parameter& weight_;
  AxisPlace tokens_;
  const std::optional<std::int64_t> padding_index_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_EMBEDDING_H_

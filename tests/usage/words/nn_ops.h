// Declares names that the usage comments in nn/ops/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_NN_OPS_H_
#define TESTS_USAGE_WORDS_NN_OPS_H_

#include <cmath>
#include <cstdint>
#include <memory>

#include "nn/autograd/context.h"
#include "nn/kernels/window2d.h"
#include "nn/modules/lambda.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/ops/add.h"
#include "nn/ops/batch_norm.h"
#include "nn/ops/linear.h"
#include "nn/ops/loss.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::ops::usage {

extern Context& ctx;
extern const Tensor x;
extern Parameter *weight, *bias;
extern const Window2d window;
extern nn::Linear& block;

namespace arithmetic_h {
extern const Tensor mean, deviation;
}

namespace axis_part_h {
extern const int axis;
extern const std::int64_t begin;
extern Kernels& kernels;
extern Tensor y;
}  // namespace axis_part_h

namespace binary_h {
extern const Tensor a, b;
std::unique_ptr<Node> MakeDivNode(const Tensor& a, const Tensor& b,
                                  const Tensor& y);
}  // namespace binary_h

namespace custom_h {
extern nn::Sequential* model;
}

namespace broadcast_h {
extern Kernels& kernels;
extern const Tensor dy, a;
}  // namespace broadcast_h

namespace rank_sum_h {
extern const Tensor part;
}

namespace tokens_h {
extern const Tensor part, bias;
}

namespace concat_h {
extern const Tensor skipped;
}

namespace batch_norm_h {
extern const Tensor w, b;
extern const RunningStats running;
}  // namespace batch_norm_h

namespace attention_h {
extern const Tensor q, k, v, qkv;
}

namespace masked_attention_h {
extern const Tensor q, k, v, tokens, by_distance;
extern const double padding;
}  // namespace masked_attention_h

namespace rotary_h {
extern const Tensor q, qkv;
}

namespace embedding_h {
extern const Tensor tokens;
extern Parameter *table, *positions;
}  // namespace embedding_h

namespace flatten_h {
extern const Tensor images;
}

namespace matmul_h {
extern const Tensor q, k;
}

namespace reduce_h {
extern const Tensor images;
}

namespace expand_h {
extern const Tensor row;
extern const std::int64_t N, D;
}  // namespace expand_h

namespace extremes_h {
extern const Tensor scores, images, labels;
}

namespace sort_h {
extern const Tensor scores;
}

namespace scalar_like_h {
extern const Tensor a;
}

namespace compare_h {
extern const Tensor scores, labels;
}

namespace where_h {
extern const Tensor small, large, scores, mask;
extern const double kInfinity;
}  // namespace where_h

namespace gather_h {
extern const Tensor log_probs, labels, order, zeros, groups;
}

namespace cumsum_h {
extern const Tensor probabilities;
}

namespace einsum_h {
extern const Tensor q, k, a, b;
}

namespace flip_h {
extern const Tensor images;
}

namespace triangle_h {
extern const Tensor scores;
}

namespace reshape_h {
extern const std::int64_t N, T, H, D;
}

namespace slice_h {
extern const std::int64_t D, T;
}

namespace softmax_h {
extern const Tensor scores, images;
}

namespace norm_h {
extern const Tensor w, b, v, branch, images;
}

namespace loss_h {
extern const Tensor loss, logits, early_logits, labels;
extern const LossFn whole;
extern decltype(SplitLoss::split) split;
struct Spec {
  LossFn loss;
};
extern Spec spec;
}  // namespace loss_h

namespace pad_h {
extern const Tensor signals;
}

}  // namespace troupe::nn::ops::usage

#endif  // TESTS_USAGE_WORDS_NN_OPS_H_

// The f32 loops of one instruction set, as a table of functions on plain
// pointers, which the cpu kernels call after they have checked shapes and
// dtypes.
//
//   const Loops& loops = Avx512Loops();
//   loops.relu_forward(n, x, y);
//
// Every instruction set is one file (loops_plain.cc, ...) compiled with its own
// flags; the table is the only thing with external linkage instantiated there.
// The loops of family x are in x_loops.h, where Set...Loops() puts them into
// the table.
// Letters: the same as in nn/kernels/kernels.h.

#ifndef NN_KERNELS_CPU_LOOPS_H_
#define NN_KERNELS_CPU_LOOPS_H_

#include <cstddef>
#include <cstdint>

#include "nn/kernels/element_functions.h"
#include "nn/random/fill_loops.h"

namespace troupe::nn::cpu {

// A convolution or pooling of images (N, H, W, C) to (N, P, Q, O).
struct ImageShape {
  std::int64_t n, h, w, c;
  std::int64_t p, q, o;
  std::int64_t r, s;
  std::int64_t stride_h, stride_w;
  std::int64_t pad_h, pad_w;
  std::int64_t dilation_h = 1, dilation_w = 1;
};

// A border around images (N, H, W, C): (N, P, Q, C). rows[P] and columns[Q] are
// the rows and columns of the image that are copied, -1: zeros.
struct PadShape {
  std::int64_t n, h, w, c;
  std::int64_t p, q;
  std::int64_t left;  // columns of the border before the image
  const std::int32_t *rows, *columns;
};

// SgdRule and the scalars it reads, in f32. If `momentum` is 0, there is no
// buffer.
struct SgdScalars {
  float lr, momentum, undampened, weight_decay, inverse_divisor;
  bool nesterov, first_step;
};

// Rows of y = f(a, b), each `cols` long. If one_a is true, a row of a is one
// element, repeated; a_row is the distance between rows of a in elements. The
// same for b.
struct BinaryShape {
  std::int64_t rows, cols;
  std::int64_t a_row, b_row;
  bool one_a, one_b;
};

// Returns the length of an array of one value per channel: a multiple of the
// vector length of every instruction set.
constexpr std::int64_t PaddedChannels(std::int64_t channels) {
  return (channels + 15) / 16 * 16;
}

// Arrays by channel: z = (x - mean) scale + shift. Padded.
struct ChannelAffine {
  const float *mean, *scale, *shift;
};

// Arrays by channel: dx = scale dz - (x - mean) projected - mean. Null, or
// padded.
struct ChannelGradientTerms {
  const float *mean, *projected;
};

// Dropout of attention: probabilities whose draw is below `drop_below` become
// 0.
struct AttentionDropout {
  // FillLoops::bits, which is chosen separately for the CPU.
  void (*draw)(const FirstDraw& first, std::uint32_t* words, std::size_t count);
  FirstDraw first;  // draw of query 0, key 0 of the first head
  std::uint32_t drop_below;
  float scale;  // factor of the others
};

// Attention of the `group` heads of queries that share one head of keys, in one
// sample. The ..._row fields are the floats from one position to the next; the
// heads of a group are side by side, `width` floats each. Letters of
// nn/kernels/attention.h: T queries, S keys, D width.
struct AttentionHeadShape {
  std::int64_t queries, keys, width, group;
  bool causal;
  float scale;
  std::int64_t q_row, k_row, v_row, y_row;
  std::int64_t dq_row, dk_row, dv_row;  // for the gradients
  const AttentionDropout* dropout;      // null: none
};
struct AttentionInputs {
  const float *q, *k, *v;
};
struct AttentionGradients {
  float *dq, *dk, *dv;
};

// AdamRule and the scalars it reads, in f32.
struct AdamScalars {
  float one_minus_beta1, beta2, one_minus_beta2, eps, inverse_divisor;
  float inverse_root2;  // 1 / sqrt(bias_correction2)
  float weight_decay;   // added to the gradient
  float shrink;         // factor of a parameter before its step
  float step_size;      // lr / bias_correction1
};

// LarsRule and values that follow from the norms:
// buf = momentum * buf + rate * (g + weight_decay * p).
struct LarsScalars {
  float rate, momentum, weight_decay, inverse_divisor;
};

// Loops of losses.
struct LossLoops {
  // Returns the loss of one row; d may be null. *hit: whether the largest logit
  // is the target.
  double (*cross_entropy_row)(std::int64_t classes, const float* logits,
                              std::int64_t target, float* d, bool* hit);
  // The same with class weights, which may be null, and smoothing.
  double (*weighted_cross_entropy_row)(std::int64_t classes,
                                       const float* logits, std::int64_t target,
                                       const float* weights, double smoothing,
                                       float* d, bool* hit);
  // Return, for a part of a row's logits and an offset that is at least the
  // largest of the row: the largest, n > 0; the sum of e^(x - offset); the sum
  // of w (x - offset), where w may be null.
  float (*largest_of)(std::int64_t n, const float* x);
  double (*exp_sum)(std::int64_t n, const float* x, float offset);
  double (*offset_sum)(std::int64_t n, const float* x, float offset,
                       const float* w);
  // Writes d = scale e^(x - offset) - share w; w may be null, d may be x.
  void (*softmax_gradient)(std::int64_t n, const float* x, float offset,
                           float scale, float share, const float* w, float* d);
  // Returns the sum of the losses; d may be null.
  double (*pair_loss)(const PairLossRule& rule, std::int64_t n,
                      const float* prediction, const float* target, float* d);
};

struct Loops : LossLoops {
  const char* name;

  // Return the floats of scratch memory that the linear and convolution loops
  // need.
  std::int64_t (*linear_scratch)(std::int64_t n, std::int64_t k,
                                 std::int64_t m);
  std::int64_t (*conv_scratch)(const ImageShape& shape);

  // `b` and `db` may be null. `ld`: distance between rows of x and of w.
  void (*linear_forward)(std::int64_t n, std::int64_t k, std::int64_t m,
                         const float* x, const float* w, std::int64_t ld,
                         const float* b, float* y, float* scratch);
  // `ld`: distance between rows of dy.
  void (*linear_backward_input)(std::int64_t n, std::int64_t k, std::int64_t m,
                                const float* dy, std::int64_t ld,
                                const float* w, bool accumulate, float* dx,
                                float* scratch);
  // `dw` is rows [begin, begin + rows) of the gradient.
  void (*linear_backward_weight)(std::int64_t n, std::int64_t k, std::int64_t m,
                                 std::int64_t begin, std::int64_t rows,
                                 const float* x, const float* dy,
                                 bool accumulate, float* dw, float* scratch);
  // sums[M] (+)= sum over N of x[N, M]
  void (*column_sums)(std::int64_t n, std::int64_t m, const float* x,
                      bool accumulate, float* sums);

  // Copies the first M columns of from[N, ld_from] to those of to[N, ld_to].
  void (*copy_columns)(std::int64_t n, std::int64_t m, const float* from,
                       std::int64_t ld_from, float* to, std::int64_t ld_to);

  // y[N, M] += b[M]
  void (*add_to_rows)(std::int64_t n, std::int64_t m, const float* b, float* y);

  void (*conv_forward)(const ImageShape& shape, const float* x, const float* w,
                       const float* b, float* y, float* scratch);
  void (*conv_backward_input)(const ImageShape& shape, const float* dy,
                              const float* w, float* dx, float* scratch);
  void (*conv_backward_weight)(const ImageShape& shape, const float* x,
                               const float* dy, bool accumulate, float* dw,
                               float* scratch);

  // Convolutions with as many groups as channels: C = O, w[C, 1, R, S].
  std::int64_t (*depthwise_scratch)(const ImageShape& shape);
  void (*depthwise_forward)(const ImageShape& shape, const float* x,
                            const float* w, const float* b, float* y,
                            float* scratch);
  void (*depthwise_backward_input)(const ImageShape& shape, const float* dy,
                                   const float* w, float* dx, float* scratch);
  void (*depthwise_backward_weight)(const ImageShape& shape, const float* x,
                                    const float* dy, bool accumulate, float* dw,
                                    float* scratch);

  void (*pad_forward)(const PadShape& shape, const float* x, float* y);
  void (*pad_backward)(const PadShape& shape, const float* dy, float* dx);
  // Returns the floats of scratch memory for either pass of attention.
  std::int64_t (*attention_scratch)(const AttentionHeadShape& shape);
  // `lse` is [group, T].
  void (*attention_forward)(const AttentionHeadShape& shape,
                            const AttentionInputs& in, float* y, float* lse,
                            float* scratch);
  void (*attention_backward)(const AttentionHeadShape& shape,
                             const AttentionInputs& in, const float* y,
                             const float* lse, const float* dy,
                             const AttentionGradients& out, float* scratch);
  // Rotates one head by tables of `pairs` cosines and sines (rotary embedding).
  void (*rotate_halves)(std::int64_t pairs, const float* cosine,
                        const float* sine, const float* x, float* y);
  void (*rotate_pairs)(std::int64_t pairs, const float* cosine,
                       const float* sine, const float* x, float* y);

  void (*max_pool_forward)(const ImageShape& shape, const float* x, float* y,
                           std::int32_t* argmax);
  void (*max_pool_backward)(const ImageShape& shape, const float* dy,
                            const std::int32_t* argmax, float* dx);
  // `padded`: means count the part of a window in the padding, too.
  void (*avg_pool_forward)(const ImageShape& shape, bool padded, const float* x,
                           float* y);
  void (*avg_pool_backward)(const ImageShape& shape, bool padded,
                            const float* dy, float* dx);
  // Uses only the extents of the images.
  void (*adaptive_avg_pool_forward)(const ImageShape& shape, const float* x,
                                    float* y);
  void (*adaptive_avg_pool_backward)(const ImageShape& shape, const float* dy,
                                     float* dx);

  // Loops over rows x[R, C] whose channels are normalised separately. `sums`
  // f64 is two padded arrays, to which channel_sums adds x and x^2, and
  // channel_gradient_sums dz and dz (x - mean), where dz is dy, masked by z > 0
  // if `relu`. `residual` may be null.
  void (*channel_sums)(std::int64_t rows, std::int64_t channels, const float* x,
                       double* sums);
  void (*channel_forward)(std::int64_t rows, std::int64_t channels,
                          const ChannelAffine& affine, const float* x,
                          const float* residual, bool relu, float* y);
  void (*channel_gradient_sums)(std::int64_t rows, std::int64_t channels,
                                const ChannelAffine& affine, const float* x,
                                const float* dy, bool relu, double* sums);
  void (*channel_backward)(std::int64_t rows, std::int64_t channels,
                           const ChannelAffine& affine,
                           const ChannelGradientTerms& terms, const float* x,
                           const float* dy, bool relu, float* dx);

  // Loops over rows x[R, D], each normalised separately. `stats` [R, 2]: mean
  // and rstd. `w` and `b` may be null. `sums`: two padded arrays, to which sums
  // of dy and of dy xhat are added.
  void (*norm_rows_forward)(std::int64_t rows, std::int64_t d, bool centered,
                            double eps, const float* x, const float* w,
                            const float* b, float* y, double* stats);
  void (*norm_rows_backward_input)(std::int64_t rows, std::int64_t d,
                                   bool centered, const float* x,
                                   const double* stats, const float* w,
                                   const float* dy, float* dx);
  void (*norm_rows_backward_weight)(std::int64_t rows, std::int64_t d,
                                    const float* x, const double* stats,
                                    const float* dy, double* sums);

  void (*relu_forward)(std::int64_t n, const float* x, float* y);
  void (*relu_backward)(std::int64_t n, const float* y, const float* dy,
                        float* dx);
  void (*scale)(std::int64_t n, float factor, const float* x, float* y);
  void (*add)(std::int64_t n, const float* a, const float* b, float* y);
  void (*fill)(std::int64_t n, float value, float* y);
  // `p` is the function's parameter; `saved` is the same as in UnaryKernels.
  void (*unary_forward)(UnaryFunction f, float p, std::int64_t n,
                        const float* x, float* y);
  void (*unary_backward)(UnaryFunction f, float p, std::int64_t n,
                         const float* saved, const float* dy, float* dx);
  void (*binary)(BinaryFunction f, const BinaryShape& shape, const float* a,
                 const float* b, float* y);
  // Loops over one row of n elements. y may be x, dx may be dy.
  void (*softmax_row)(std::int64_t n, const float* x, float* y);
  void (*log_softmax_row)(std::int64_t n, const float* x, float* y);
  void (*softmax_row_backward)(std::int64_t n, const float* y, const float* dy,
                               float* dx);
  void (*log_softmax_row_backward)(std::int64_t n, const float* y,
                                   const float* dy, float* dx);
  // Returns the sum of a[i] b[i], or of a[i] if b is null.
  double (*sum_of_products)(std::int64_t n, const float* a, const float* b);
  // y[cols, rows] = x[rows, cols]
  void (*transpose)(std::int64_t rows, std::int64_t cols, const float* x,
                    float* y);
  // The same with x_row and y_row elements from one row to the next.
  void (*transpose_strided)(std::int64_t rows, std::int64_t cols,
                            const float* x, std::int64_t x_row, float* y,
                            std::int64_t y_row);
  void (*sgd)(std::int64_t n, const SgdScalars& step, const float* grad,
              float* param, float* momentum);
  // `max_exp_avg_sq` is null without amsgrad.
  void (*adam)(std::int64_t n, const AdamScalars& step, const float* grad,
               float* param, float* exp_avg, float* exp_avg_sq,
               float* max_exp_avg_sq);
  // step.step_size is 1 / bias_correction1, step.weight_decay the direction's.
  void (*lamb_direction)(std::int64_t n, const AdamScalars& step,
                         const float* grad, const float* param, float* exp_avg,
                         float* exp_avg_sq, float* direction);
  // `momentum` may be null.
  void (*lars)(std::int64_t n, const LarsScalars& step, const float* grad,
               float* param, float* momentum);
  // y += factor * x
  void (*add_scaled)(std::int64_t n, float factor, const float* x, float* y);
  // y += factor * (x - y)
  void (*move_towards)(std::int64_t n, float factor, const float* x, float* y);
  // y = x, limited to [-limit, limit]; NaN stays.
  void (*clip)(std::int64_t n, float limit, const float* x, float* y);
  // Returns the sum of x^2.
  double (*square_sum)(std::int64_t n, const float* x);

  // Conversions of 16-bit floating types, given as their bits.
  void (*widen_bf16)(std::int64_t n, const std::uint16_t* x, float* y);
  void (*narrow_bf16)(std::int64_t n, const float* x, std::uint16_t* y);
  void (*widen_f16)(std::int64_t n, const std::uint16_t* x, float* y);
  void (*narrow_f16)(std::int64_t n, const float* x, std::uint16_t* y);
};

const Loops& PlainLoops();
// Each of these requires a CPU with its instructions.
const Loops& Avx2Loops();
const Loops& Avx512Loops();

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_LOOPS_H_

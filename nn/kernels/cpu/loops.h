// The f32 loops of one instruction set, as a table of functions on plain
// pointers: what CpuKernels calls once it has looked at shapes and dtypes.
//
//   const Loops& loops = Avx512Loops();
//   loops.relu_forward(n, x, y);
//
// Every instruction set is one file (loops_plain.cc, ...) compiled with its own
// flags; nothing with external linkage is instantiated there but the table.
// Letters as in nn/kernels/kernels.h.

#ifndef NN_KERNELS_CPU_LOOPS_H_
#define NN_KERNELS_CPU_LOOPS_H_

#include <cstdint>

namespace troupe::nn::cpu {

// A convolution or pooling of images (N, H, W, C) to (N, P, Q, O).
struct ImageShape {
  std::int64_t n, h, w, c;
  std::int64_t p, q, o;
  std::int64_t r, s;
  std::int64_t stride_h, stride_w;
  std::int64_t pad_h, pad_w;
};

// SgdRule and the scalars it reads, in f32. `momentum` 0 means that there is no
// buffer.
struct SgdScalars {
  float lr, momentum, undampened, weight_decay, inverse_divisor;
  bool nesterov, first_step;
};

struct Loops {
  const char* name;

  // Floats of scratch memory that the linear and convolution loops want.
  std::int64_t (*linear_scratch)(std::int64_t n, std::int64_t k,
                                 std::int64_t m);
  std::int64_t (*conv_scratch)(const ImageShape& shape);

  // `b` and `db` may be null.
  void (*linear_forward)(std::int64_t n, std::int64_t k, std::int64_t m,
                         const float* x, const float* w, const float* b,
                         float* y, float* scratch);
  void (*linear_backward_input)(std::int64_t n, std::int64_t k, std::int64_t m,
                                const float* dy, const float* w, float* dx,
                                float* scratch);
  void (*linear_backward_weight)(std::int64_t n, std::int64_t k, std::int64_t m,
                                 const float* x, const float* dy,
                                 bool accumulate, float* dw, float* scratch);
  // sums[M] (+)= sum over N of x[N, M]
  void (*column_sums)(std::int64_t n, std::int64_t m, const float* x,
                      bool accumulate, float* sums);

  // y[N, M] += b[M]
  void (*add_to_rows)(std::int64_t n, std::int64_t m, const float* b, float* y);

  void (*conv_forward)(const ImageShape& shape, const float* x, const float* w,
                       const float* b, float* y, float* scratch);
  void (*conv_backward_input)(const ImageShape& shape, const float* dy,
                              const float* w, float* dx, float* scratch);
  void (*conv_backward_weight)(const ImageShape& shape, const float* x,
                               const float* dy, bool accumulate, float* dw,
                               float* scratch);

  void (*max_pool_forward)(const ImageShape& shape, const float* x, float* y,
                           std::int32_t* argmax);
  void (*max_pool_backward)(const ImageShape& shape, const float* dy,
                            const std::int32_t* argmax, float* dx);
  void (*avg_pool_forward)(const ImageShape& shape, const float* x, float* y);
  void (*avg_pool_backward)(const ImageShape& shape, const float* dy,
                            float* dx);

  void (*relu_forward)(std::int64_t n, const float* x, float* y);
  void (*relu_backward)(std::int64_t n, const float* y, const float* dy,
                        float* dx);
  void (*scale)(std::int64_t n, float factor, const float* x, float* y);
  void (*add)(std::int64_t n, const float* a, const float* b, float* y);
  void (*fill)(std::int64_t n, float value, float* y);
  // y[cols, rows] = x[rows, cols]
  void (*transpose)(std::int64_t rows, std::int64_t cols, const float* x,
                    float* y);
  void (*sgd)(std::int64_t n, const SgdScalars& step, const float* grad,
              float* param, float* momentum);

  // 16-bit floating types, as their bits.
  void (*widen_bf16)(std::int64_t n, const std::uint16_t* x, float* y);
  void (*narrow_bf16)(std::int64_t n, const float* x, std::uint16_t* y);
  void (*widen_f16)(std::int64_t n, const std::uint16_t* x, float* y);
  void (*narrow_f16)(std::int64_t n, const float* x, std::uint16_t* y);

  // Returns the sum of squares; d may be null.
  double (*squared_error)(std::int64_t n, const float* prediction,
                          const float* target, float* d);
  // One row: its loss; d may be null. *hit: the largest logit is the target.
  double (*cross_entropy_row)(std::int64_t classes, const float* logits,
                              std::int64_t target, float* d, bool* hit);
};

const Loops& PlainLoops();
// These two run only on a CPU that has the instructions.
const Loops& Avx2Loops();
const Loops& Avx512Loops();

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_LOOPS_H_

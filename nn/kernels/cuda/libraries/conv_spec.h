// Describes a two-dimensional convolution without its numbers: the key by which
// an algorithm is chosen.
//
//   ConvSpec spec;
//   spec.way = ConvWay::kForward;
//   spec.N = 32, spec.H = spec.W = 56, spec.C = 64, spec.O = 128;
//   spec.window = window;                   // 3x3
//   spec.dtype = spec.out_dtype = DType::kBF16;
//   TROUPE_RETURN_IF_ERROR(spec.Check());
//   const std::string key = spec.Key();    // names it in a choice cache
//
// Letters: N batch; C channels in, O channels out, G groups of channels, H W
// input pixels, P Q output pixels, R S filter rows and columns. Images are
// x[N, H, W, C] and y[N, P, Q, O]. Weights are w[O, R, S, C / G] here: channels
// last, as tensor cores need them. Parameters are stored as w[O, C / G, R, S];
// conv2d.cc transposes them, which costs little compared with the images.
//
// Uses no CUDA, so it is tested everywhere. Threads: plain data.

#ifndef NN_KERNELS_CUDA_LIBRARIES_CONV_SPEC_H_
#define NN_KERNELS_CUDA_LIBRARIES_CONV_SPEC_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "nn/kernels/cuda/libraries/operand_checks.h"
#include "nn/kernels/window2d.h"
#include "nn/tensor/dtype.h"

namespace troupe::nn::cuda {

enum class ConvWay : std::uint8_t {
  kForward,         // y = x * w (+ bias[O])
  kBackwardInput,   // dx from dy and w
  kBackwardWeight,  // dw from x and dy
};

struct ConvSpec {
  ConvWay way = ConvWay::kForward;
  std::int64_t N = 0, H = 0, W = 0, C = 0, O = 0;  // each at least 1
  std::int64_t groups = 1;                         // divides C and O
  Window2d window;
  DType dtype = DType::kF32;      // dtype of the operands: f32, bf16, f16
  DType out_dtype = DType::kF32;  // dtype of the result: f32 or `dtype`
  bool bias = false;              // adds a bias of `dtype`; kForward only
  // Whether f32 operands may be rounded to TF32 (10 bits); sums stay in f32.
  bool allow_tf32 = false;

  std::int64_t P() const { return window.OutH(H); }
  std::int64_t Q() const { return window.OutW(W); }
  // Returns C / G.
  std::int64_t group_channels() const { return C / groups; }
  // Number of elements of x or dx, of w or dw, of y or dy.
  std::int64_t image_elems() const { return N * H * W * C; }
  std::int64_t weight_elems() const {
    return O * window.kernel_h * window.kernel_w * group_channels();
  }
  std::int64_t output_elems() const { return N * P() * Q() * O; }

  // All members, in order.
  auto Fields() const {
    return std::make_tuple(way, N, H, W, C, O, window.kernel_h, window.kernel_w,
                           window.stride_h, window.stride_w, window.pad_h,
                           window.pad_w, window.dilation_h, window.dilation_w,
                           groups, dtype, out_dtype, bias, allow_tf32);
  }
  friend bool operator==(const ConvSpec& a, const ConvSpec& b) {
    return a.Fields() == b.Fields();
  }
  template <typename Hash>
  friend Hash AbslHashValue(Hash hash, const ConvSpec& spec) {
    return Hash::combine(std::move(hash), spec.Fields());
  }

  //   kInvalidArgument: extents, window, dtypes or bias are wrong; names which.
  absl::Status Check() const;
  // Returns a word (letters, digits and ".:_+") that is unique to the spec:
  // "conv_forward:bf16:bf16:32.56.56.64:64.3.3:s1.1:p1.1+bias", with ":d2.2"
  // for a dilation and ":g32" for groups.
  std::string Key() const;
};

// Device memory, aligned to kOperandAlignmentBytes. ConvSpec::way decides which
// of image, weight and output is written; the others are read. They must not
// overlap.
struct ConvOperands {
  void* image = nullptr;       // x or dx[N, H, W, C]
  void* weight = nullptr;      // w or dw[O, R, S, C / G]
  void* output = nullptr;      // y or dy[N, P, Q, O]
  const void* bias = nullptr;  // [O], if the plan adds it
};

// Returns kInvalidArgument if an operand is missing or not aligned. Every Run()
// calls it first. `adds_bias`: ConvPlan::adds_bias().
absl::Status CheckOperands(const ConvSpec& spec, const ConvOperands& operands,
                           bool adds_bias);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_CONV_SPEC_H_

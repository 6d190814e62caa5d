// What a two-dimensional convolution is, apart from its numbers.
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
// last, as tensor cores want them, not w[O, C / G, R, S] as parameters lie.
// conv2d.cc turns one into the other, which costs little beside the images.
//
// No CUDA in here, so that it is tested everywhere. Threads: plain data.

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
  DType dtype = DType::kF32;      // of what is read: f32, bf16, f16
  DType out_dtype = DType::kF32;  // f32, or that of what is read
  bool bias = false;  // with kForward; it has the dtype of what is read
  // Whether f32 operands may be rounded to TF32 (10 bits); sums stay in f32.
  bool allow_tf32 = false;

  std::int64_t P() const { return window.OutH(H); }
  std::int64_t Q() const { return window.OutW(W); }
  // C / G.
  std::int64_t group_channels() const { return C / groups; }
  // Elements of x or dx, of w or dw, of y or dy.
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

  //   kInvalidArgument: extents, window, dtypes or bias do not go together;
  //     says what.
  absl::Status Check() const;
  // Letters, digits and ".:_+" without spaces, other for each other spec:
  // "conv_forward:bf16:bf16:32.56.56.64:64.3.3:s1.1:p1.1+bias", and ":d2.2",
  // ":g32" where there is dilation, where there are groups.
  std::string Key() const;
};

// Device memory, aligned to kOperandAlignmentBytes; ConvSpec's way says which
// is written, and the other two are read. No two overlap.
struct ConvOperands {
  void* image = nullptr;       // x or dx[N, H, W, C]
  void* weight = nullptr;      // w or dw[O, R, S, C / G]
  void* output = nullptr;      // y or dy[N, P, Q, O]
  const void* bias = nullptr;  // [O], where the plan adds it
};

// kInvalidArgument where an operand is missing or not aligned; what every Run()
// begins with. `adds_bias`: the plan's.
absl::Status CheckOperands(const ConvSpec& spec, const ConvOperands& operands,
                           bool adds_bias);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_CONV_SPEC_H_

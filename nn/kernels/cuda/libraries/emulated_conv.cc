// Convolutions by plain loops on the CPU, behind the interface of conv.h. Tests
// that emulate CUDA link it instead of cuDNN. Sums are in f64, or in f32 in one
// of two orders (emulated_choice.h), and rounded once more at the end.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/cuda/emulated/enqueue.h"
#include "nn/kernels/cuda/libraries/conv.h"
#include "nn/kernels/cuda/libraries/emulated_choice.h"
#include "nn/kernels/cuda/libraries/emulated_elements.h"
#include "nn/kernels/cuda/libraries/plan_cache.h"

namespace troupe::nn::cuda {
namespace {

using Values = std::vector<double>;

// One tap of one window: the offsets of the first channel of its input pixel
// and of its output pixel, and of the tap's weights [o, r, s, 0] for o = 0.
struct Tap {
  std::int64_t image, output, weight;
};

// Calls visit(tap) for every tap of every window that lies in the image.
// Samples and pixels are in ascending order, or descending if `reversed`.
template <typename Visit>
void ForEachTap(const ConvSpec& spec, bool reversed, Visit visit) {
  const Window2d& win = spec.window;
  const std::int64_t pixels = spec.P() * spec.Q();
  for (std::int64_t k = 0; k < spec.N * pixels; ++k) {
    const std::int64_t i = reversed ? spec.N * pixels - 1 - k : k;
    const std::int64_t n = i / pixels;
    const std::int64_t h0 = i % pixels / spec.Q() * win.stride_h - win.pad_h;
    const std::int64_t w0 = i % spec.Q() * win.stride_w - win.pad_w;
    for (std::int64_t r = 0; r < win.kernel_h; ++r) {
      const std::int64_t h = h0 + r * win.dilation_h;
      for (std::int64_t s = 0; h >= 0 && h < spec.H && s < win.kernel_w; ++s) {
        const std::int64_t w = w0 + s * win.dilation_w;
        if (w < 0 || w >= spec.W) continue;
        visit(Tap{((n * spec.H + h) * spec.W + w) * spec.C, i * spec.O,
                  (r * win.kernel_w + s) * spec.group_channels()});
      }
    }
  }
}

// Computes, reading two of the three arrays and writing the third,
//   y[o] += x[c] w[o, c], dx[c] += dy[o] w[o, c] or dw[o, c] += dy[o] x[c]
// for each tap and the channels c of o's group, rounded to `Sum` after each.
template <typename Sum>
void Convolve(const ConvSpec& spec, bool reversed, Values& x, Values& w,
              Values& y) {
  const auto add = [](double& to, double more) {
    to = static_cast<Sum>(to + more);
  };
  const std::int64_t C = spec.group_channels(), O = spec.O;
  const std::int64_t filter = spec.window.kernel_h * spec.window.kernel_w * C;
  const std::int64_t outputs = O / spec.groups;  // output channels of a group
  ForEachTap(spec, reversed, [&](const Tap& tap) {
    double* y_O = y.data() + tap.output;
    for (std::int64_t o = 0; o < O; ++o) {
      double* x_C = x.data() + tap.image + o / outputs * C;
      double* w_C = w.data() + o * filter + tap.weight;
      switch (spec.way) {
        case ConvWay::kForward: {
          double sum = 0;
          for (std::int64_t c = 0; c < C; ++c) add(sum, x_C[c] * w_C[c]);
          add(y_O[o], sum);
          break;
        }
        case ConvWay::kBackwardInput:
          for (std::int64_t c = 0; c < C; ++c) add(x_C[c], y_O[o] * w_C[c]);
          break;
        case ConvWay::kBackwardWeight:
          for (std::int64_t c = 0; c < C; ++c) add(w_C[c], y_O[o] * x_C[c]);
          break;
      }
    }
  });
}

// Initializes every pixel of `y` with the bias.
void FillWithBias(const ConvSpec& spec, const void* bias, Values& y) {
  const Values added = WidenAll(bias, spec.out_dtype, spec.O);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = added[i % spec.O];
}

// Computes one call on the host. `adds_bias`: ConvPlan::adds_bias().
void Run(const ConvSpec& spec, const ConvOperands& operands, bool adds_bias,
         EmulatedSums sums) {
  const auto begin = [&](bool written, const void* from, std::int64_t count) {
    return written ? Values(static_cast<std::size_t>(count), 0.0)
                   : WidenAll(from, spec.dtype, count);
  };
  Values x = begin(spec.way == ConvWay::kBackwardInput, operands.image,
                   spec.image_elems());
  Values w = begin(spec.way == ConvWay::kBackwardWeight, operands.weight,
                   spec.weight_elems());
  Values y = begin(spec.way == ConvWay::kForward, operands.output,
                   spec.output_elems());
  if (spec.bias && adds_bias) FillWithBias(spec, operands.bias, y);
  if (sums == EmulatedSums::kF64) {
    Convolve<double>(spec, /*reversed=*/false, x, w, y);
  } else {
    Convolve<float>(spec, sums == EmulatedSums::kF32Reversed, x, w, y);
  }
  switch (spec.way) {
    case ConvWay::kForward:
      return RoundAll(y, spec.out_dtype, operands.output);
    case ConvWay::kBackwardInput:
      return RoundAll(x, spec.out_dtype, operands.image);
    case ConvWay::kBackwardWeight:
      return RoundAll(w, spec.out_dtype, operands.weight);
  }
}

class EmulatedPlan final : public ConvPlan {
 public:
  // In a library, only some plans add the bias. So it is here (for odd O), so
  // that tests cover both branches of the caller.
  EmulatedPlan(const ConvSpec& spec, EmulatedSums sums)
      : ConvPlan(spec, kEmulatedSumsNames[static_cast<int>(sums)],
                 kEmulatedWorkspaceBytes,
                 /*adds_bias=*/spec.bias && spec.O % 2 == 1),
        sums_(sums) {}

  absl::Status Run(const ConvOperands& operands, void* workspace,
                   cudaStream_t stream) override {
    TROUPE_RETURN_IF_ERROR(CheckOperands(spec(), operands, adds_bias()));
    return EnqueuedStatus("Convolution",
                          emulated_cuda::EnqueueHostWork(
                              stream, {"Convolution", __FILE__, __LINE__},
                              [spec = spec(), operands, adds_bias = adds_bias(),
                               workspace, sums = sums_] {
                                PoisonWorkspace(workspace);
                                cuda::Run(spec, operands, adds_bias, sums);
                              }));
  }

 private:
  const EmulatedSums sums_;
};

using Emulated =
    EmulatedLibrary<ConvSpec, ConvPlan, EmulatedPlan, cudaStream_t>;

}  // namespace

std::string ConvLibraryName() { return "emulated convolutions"; }

absl::StatusOr<std::unique_ptr<ConvPlans>> OpenConvPlans(
    const LibraryOptions& options) {
  return std::make_unique<LibraryPlans<Emulated, ConvPlans>>(options);
}

}  // namespace troupe::nn::cuda

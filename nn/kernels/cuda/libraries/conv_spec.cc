#include "nn/kernels/cuda/libraries/conv_spec.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::nn::cuda {
namespace {

absl::string_view NameOf(ConvWay way) {
  switch (way) {
    case ConvWay::kForward:
      return "conv_forward";
    case ConvWay::kBackwardInput:
      return "conv_backward_input";
    case ConvWay::kBackwardWeight:
      return "conv_backward_weight";
  }
  return "unknown";
}

std::string Dilation(const Window2d& w) {
  if (w.dilation_h == 1 && w.dilation_w == 1) return "";
  return absl::StrCat(":d", w.dilation_h, ".", w.dilation_w);
}

bool InRange(std::int64_t value, std::int64_t least) {
  return value >= least && value <= kExtentMax;
}

}  // namespace

std::string ConvSpec::Key() const {
  const Window2d& w = window;
  return absl::StrCat(
      NameOf(way), ":", DTypeName(dtype), ":", DTypeName(out_dtype), ":",  //
      N, ".", H, ".", W, ".", C, ":", O, ".", w.kernel_h, ".", w.kernel_w, ":s",
      w.stride_h, ".", w.stride_w, ":p", w.pad_h, ".", w.pad_w, Dilation(w),
      groups == 1 ? "" : absl::StrCat(":g", groups), bias ? "+bias" : "",
      allow_tf32 ? "+tf32" : "");
}

absl::Status ConvSpec::Check() const {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(Key(), ": ", why));
  };
  for (std::int64_t extent :
       {N, H, W, C, O, window.kernel_h, window.kernel_w, window.stride_h,
        window.stride_w, window.dilation_h, window.dilation_w, groups}) {
    if (!InRange(extent, 1)) return refuse("extents must be in [1, 2^31)");
  }
  if (!InRange(window.pad_h, 0) || !InRange(window.pad_w, 0)) {
    return refuse("paddings must be in [0, 2^31)");
  }
  if (C % groups != 0 || O % groups != 0) {
    return refuse("the groups must divide the channels");
  }
  if (window.SpanH() > H + 2 * window.pad_h ||
      window.SpanW() > W + 2 * window.pad_w) {
    return refuse("the window must not be larger than the padded image");
  }
  if (bias && way != ConvWay::kForward) {
    return refuse("a bias must be of forward, which alone adds one");
  }
  return CheckDTypes(Key(), dtype, out_dtype);
}

absl::Status CheckOperands(const ConvSpec& spec, const ConvOperands& operands,
                           bool adds_bias) {
  return CheckPointers(spec.Key(), {{"image", operands.image, true},
                                    {"weight", operands.weight, true},
                                    {"output", operands.output, true},
                                    {"bias", operands.bias, adds_bias}});
}

}  // namespace troupe::nn::cuda

#include "tools/bench/gpu_kernels/kernel_call.h"

namespace troupe::bench {

std::function<absl::Status()> CallOf(const KernelCase& c, const CaseTensors& t,
                                     nn::Kernels& k) {
  const nn::Window2d window = c.window;
  nn::Tensor x = t.x, w = t.w, y = t.y, none;
  switch (c.way) {
    case KernelWay::kForward:
      if (!c.conv)
        return [=, &k]() mutable { return k.LinearForward(x, w, none, y); };
      return
          [=, &k]() mutable { return k.Conv2dForward(window, x, w, none, y); };
    case KernelWay::kBackwardInput:
      if (!c.conv)
        return [=, &k]() mutable { return k.LinearBackwardInput(y, w, x); };
      return
          [=, &k]() mutable { return k.Conv2dBackwardInput(window, y, w, x); };
    case KernelWay::kBackwardWeight:
      break;
  }
  constexpr bool kAccumulate = false;
  if (!c.conv) {
    return [=, &k]() mutable {
      return k.LinearBackwardWeight(x, y, kAccumulate, w, none);
    };
  }
  return [=, &k]() mutable {
    return k.Conv2dBackwardWeight(window, x, y, kAccumulate, w, none);
  };
}

}  // namespace troupe::bench

// The kernel set of one device: numbers in, numbers out. Fronts in nn/ops check
// shapes and record the tape; kernels only compute, on tensors that exist.
//
//   std::unique_ptr<Kernels> kernels = CreateCpuKernels({});
//   kernels->LinearForward(x, w, b, y);       // y = x w^T + b
//
// Letters: N batch, K features in, M features out; C channels in, O channels
// out, H W input pixels, P Q output pixels, R S filter rows and columns.
// Images are (N, H, W, C); convolution weights (O, C, R, S) as PyTorch keeps
// them. All tensors of a call have one dtype unless said otherwise.
//
// `accumulate`: false overwrites the gradient, true adds to it. An empty
// (undefined) bias or bias gradient means there is none.
//
// The same call on the same numbers gives the same bits, on any thread and at
// any address: a kernel is chosen from shape and instruction set alone.
//
// Threads: one thread at a time per object (it holds primitives and scratch
// memory); one object per rank. Errors: kUnimplemented for a dtype that the set
// does not compute, naming op, dtype and device. Cost: no allocation after the
// first call with a shape.

#ifndef NN_KERNELS_KERNELS_H_
#define NN_KERNELS_KERNELS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "nn/random/sample_draws.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

// A sliding window: convolution or pooling. Height first, then width.
struct Window2d {
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t pad_h = 0, pad_w = 0;  // zeros (conv) or nothing (pool)

  // Extent of the output for an input extent; at least 1 is a valid window.
  std::int64_t OutH(std::int64_t h) const {
    return (h + 2 * pad_h - kernel_h) / stride_h + 1;
  }
  std::int64_t OutW(std::int64_t w) const {
    return (w + 2 * pad_w - kernel_w) / stride_w + 1;
  }
};

// One step of SGD as PyTorch defines it (torch.optim.SGD):
//   g = grad / divisor + weight_decay * p
//   buf = first_step ? g : momentum * buf + (1 - dampening) * g
//   g = nesterov ? g + momentum * buf : buf        (momentum != 0)
//   p = p - lr * g
// Where no target was counted (divisor 0), grad / divisor counts as 0: so are
// PyTorch's gradients of a loss that ignores all targets.
struct SgdStep {
  double lr = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool first_step = true;  // no momentum buffer yet
  double divisor = 1;      // counted targets of the global batch

  double InverseDivisor() const { return divisor == 0 ? 0 : 1 / divisor; }
};

// What dropout drops: element e of sample n, where draw e of draws.At(n) is
// below drop_below / 2^32. What it keeps is multiplied by `scale`.
struct DropoutMask {
  SampleDraws draws;
  std::uint32_t drop_below = 0;
  double scale = 1;
};

class Kernels {
 public:
  virtual ~Kernels() = default;

  virtual Device device() const = 0;
  // The memory this device's tensors come from.
  virtual CachingAllocator& allocator() = 0;
  // One line for logs: "cpu:0, avx512, 1 thread, oneDNN 2.6.3".
  virtual std::string Describe() const = 0;

  // y[N, M] = x[N, K] w[M, K]^T + b[M]
  virtual absl::Status LinearForward(const Tensor& x, const Tensor& w,
                                     const Tensor& b, Tensor& y) = 0;
  // dx[N, K] = dy[N, M] w[M, K]
  virtual absl::Status LinearBackwardInput(const Tensor& dy, const Tensor& w,
                                           Tensor& dx) = 0;
  // dw[M, K] (+)= dy[N, M]^T x[N, K];  db[M] (+)= sum over N of dy.
  // Samples are added in ascending order within one kernel's fixed scheme.
  virtual absl::Status LinearBackwardWeight(const Tensor& x, const Tensor& dy,
                                            bool accumulate, Tensor& dw,
                                            Tensor& db) = 0;

  // x[N, H, W, C], w[O, C, R, S], b[O] -> y[N, P, Q, O]
  virtual absl::Status Conv2dForward(const Window2d& window, const Tensor& x,
                                     const Tensor& w, const Tensor& b,
                                     Tensor& y) = 0;
  virtual absl::Status Conv2dBackwardInput(const Window2d& window,
                                           const Tensor& dy, const Tensor& w,
                                           Tensor& dx) = 0;
  virtual absl::Status Conv2dBackwardWeight(const Window2d& window,
                                            const Tensor& x, const Tensor& dy,
                                            bool accumulate, Tensor& dw,
                                            Tensor& db) = 0;

  // `argmax` i32, of y's shape: h * W + w of the winner within its image and
  // channel; the first of equals in row order, and the last NaN before all, as
  // in PyTorch.
  virtual absl::Status MaxPool2dForward(const Window2d& window, const Tensor& x,
                                        Tensor& y, Tensor& argmax) = 0;
  virtual absl::Status MaxPool2dBackward(const Window2d& window,
                                         const Tensor& dy, const Tensor& argmax,
                                         Tensor& dx) = 0;
  // Padding counts as zeros in the mean (PyTorch's count_include_pad=True).
  virtual absl::Status AvgPool2dForward(const Window2d& window, const Tensor& x,
                                        Tensor& y) = 0;
  virtual absl::Status AvgPool2dBackward(const Window2d& window,
                                         const Tensor& dy, Tensor& dx) = 0;

  // y = max(x, 0), NaN stays;  dx = y > 0 ? dy : 0. Any shape. y may be x and
  // dx may be dy.
  virtual absl::Status ReluForward(const Tensor& x, Tensor& y) = 0;
  virtual absl::Status ReluBackward(const Tensor& y, const Tensor& dy,
                                    Tensor& dx) = 0;

  // y = mask(x): forward and backward. x [N, ...]; y may be x.
  virtual absl::Status Dropout(const DropoutMask& mask, const Tensor& x,
                               Tensor& y) = 0;

  // y[R, D] = table[rows[R], D]; rows i64. kOutOfRange names the row.
  virtual absl::Status EmbeddingForward(const Tensor& rows, const Tensor& table,
                                        Tensor& y) = 0;
  // dtable[rows[R], D] (+)= dy[R, D], in ascending order of R.
  virtual absl::Status EmbeddingBackward(const Tensor& rows, const Tensor& dy,
                                         bool accumulate, Tensor& dtable) = 0;

  // (N, H, W, C) -> (N, C, H, W) and back, as plain copies.
  virtual absl::Status NhwcToNchw(const Tensor& x, Tensor& y) = 0;
  virtual absl::Status NchwToNhwc(const Tensor& x, Tensor& y) = 0;

  // logits[N, C], targets i64[N]; rows whose target is `ignore_index` count
  // nothing. stats f64[3] = {sum of losses, counted rows, rows where the
  // largest logit is the target}; dlogits = softmax(logits) - onehot(target),
  // the gradient of the *sum*. kOutOfRange names the row and target.
  virtual absl::Status SoftmaxCrossEntropy(const Tensor& logits,
                                           const Tensor& targets,
                                           std::int64_t ignore_index,
                                           Tensor& stats, Tensor& dlogits) = 0;
  // prediction, target of one shape. stats f64[3] = {sum of squared errors,
  // number of elements, 0}; dprediction = 2 (prediction - target).
  // `dlogits` and `dprediction` may be undefined where only stats are wanted.
  virtual absl::Status MeanSquaredError(const Tensor& prediction,
                                        const Tensor& target, Tensor& stats,
                                        Tensor& dprediction) = 0;

  // stats = {weight_a * a[0] + weight_b * b[0], a[1], a[2]}, all f64[3], on the
  // statistics of losses or the gradients of them. `b` may be undefined: it
  // then adds nothing. stats may be a or b.
  virtual absl::Status CombineLosses(const Tensor& a, double weight_a,
                                     const Tensor& b, double weight_b,
                                     Tensor& stats) = 0;

  // y = x * factor[0], element by element; `factor` f64, of one element or
  // more. y may be x.
  virtual absl::Status Scale(const Tensor& x, const Tensor& factor,
                             Tensor& y) = 0;
  // count[0] += number of elements of x that are NaN or infinite; count f64.
  virtual absl::Status CountNonFinite(const Tensor& x, Tensor& count) = 0;
  // y = a + b, element by element. y may be a or b.
  virtual absl::Status Add(const Tensor& a, const Tensor& b, Tensor& y) = 0;
  virtual absl::Status Fill(double value, Tensor& y) = 0;
  // Shapes equal, dtypes any floating pair: converts, rounding to nearest.
  virtual absl::Status Copy(const Tensor& x, Tensor& y) = 0;

  // Flat ranges of equal count. `momentum` is undefined where step.momentum is
  // 0. Element-wise: an element gets the same bits wherever the range begins.
  virtual absl::Status SgdUpdate(const SgdStep& step, const Tensor& grad,
                                 Tensor& param, Tensor& momentum) = 0;
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_KERNELS_H_

// The class behind CreateReferenceKernels(); each family of ops has a file.
// Loop letters are those of nn/kernels/kernels.h: N batch, K M features, C O
// channels, H W input pixels, P Q output pixels, R S filter rows and columns.

#ifndef NN_KERNELS_REFERENCE_REFERENCE_IMPL_H_
#define NN_KERNELS_REFERENCE_REFERENCE_IMPL_H_

#include <cstdint>
#include <string>

#include "nn/kernels/kernels.h"

namespace troupe::nn::reference {

// Where row `out` of a window's output reads its row `tap`: the input row, or
// -1 in the padding. The same for columns.
inline std::int64_t InputAt(std::int64_t out, std::int64_t stride,
                            std::int64_t pad, std::int64_t tap,
                            std::int64_t extent) {
  const std::int64_t at = out * stride - pad + tap;
  return at >= 0 && at < extent ? at : -1;
}

// The output row whose window has `in` at row `tap`, or -1 if there is none.
inline std::int64_t OutputAt(std::int64_t in, std::int64_t stride,
                             std::int64_t pad, std::int64_t tap,
                             std::int64_t extent) {
  const std::int64_t at = in + pad - tap;
  if (at < 0 || at % stride != 0 || at / stride >= extent) return -1;
  return at / stride;
}

class ReferenceKernels : public Kernels {
 public:
  ReferenceKernels();

  Device device() const override { return allocator_.device(); }
  CachingAllocator& allocator() override { return allocator_; }
  std::string Describe() const override;

  // linear.cc
  absl::Status LinearForward(const Tensor& x, const Tensor& w, const Tensor& b,
                             Tensor& y) override;
  absl::Status LinearBackwardInput(const Tensor& dy, const Tensor& w,
                                   Tensor& dx) override;
  absl::Status LinearBackwardWeight(const Tensor& x, const Tensor& dy,
                                    bool accumulate, Tensor& dw,
                                    Tensor& db) override;
  // conv.cc
  absl::Status Conv2dForward(const Window2d& window, const Tensor& x,
                             const Tensor& w, const Tensor& b,
                             Tensor& y) override;
  absl::Status Conv2dBackwardInput(const Window2d& window, const Tensor& dy,
                                   const Tensor& w, Tensor& dx) override;
  absl::Status Conv2dBackwardWeight(const Window2d& window, const Tensor& x,
                                    const Tensor& dy, bool accumulate,
                                    Tensor& dw, Tensor& db) override;
  // pool.cc
  absl::Status MaxPool2dForward(const Window2d& window, const Tensor& x,
                                Tensor& y, Tensor& argmax) override;
  absl::Status MaxPool2dBackward(const Window2d& window, const Tensor& dy,
                                 const Tensor& argmax, Tensor& dx) override;
  absl::Status AvgPool2dForward(const Window2d& window, const Tensor& x,
                                Tensor& y) override;
  absl::Status AvgPool2dBackward(const Window2d& window, const Tensor& dy,
                                 Tensor& dx) override;
  // dropout.cc, embedding.cc
  absl::Status Dropout(const DropoutMask& mask, const Tensor& x,
                       Tensor& y) override;
  absl::Status EmbeddingForward(const Tensor& rows, const Tensor& table,
                                Tensor& y) override;
  absl::Status EmbeddingBackward(const Tensor& rows, const Tensor& dy,
                                 bool accumulate, Tensor& dtable) override;
  // elementwise.cc
  absl::Status ReluForward(const Tensor& x, Tensor& y) override;
  absl::Status ReluBackward(const Tensor& y, const Tensor& dy,
                            Tensor& dx) override;
  absl::Status NhwcToNchw(const Tensor& x, Tensor& y) override;
  absl::Status NchwToNhwc(const Tensor& x, Tensor& y) override;
  absl::Status CountNonFinite(const Tensor& x, Tensor& count) override;
  absl::Status Scale(const Tensor& x, const Tensor& factor, Tensor& y) override;
  absl::Status Add(const Tensor& a, const Tensor& b, Tensor& y) override;
  absl::Status Fill(double value, Tensor& y) override;
  absl::Status Copy(const Tensor& x, Tensor& y) override;
  // loss.cc
  absl::Status SoftmaxCrossEntropy(const Tensor& logits, const Tensor& targets,
                                   std::int64_t ignore_index, Tensor& stats,
                                   Tensor& dlogits) override;
  absl::Status MeanSquaredError(const Tensor& prediction, const Tensor& target,
                                Tensor& stats, Tensor& dprediction) override;
  absl::Status CombineLosses(const Tensor& a, double weight_a, const Tensor& b,
                             double weight_b, Tensor& stats) override;
  // sgd.cc
  absl::Status SgdUpdate(const SgdStep& step, const Tensor& grad, Tensor& param,
                         Tensor& momentum) override;

 private:
  CachingAllocator allocator_;
};

}  // namespace troupe::nn::reference

#endif  // NN_KERNELS_REFERENCE_REFERENCE_IMPL_H_

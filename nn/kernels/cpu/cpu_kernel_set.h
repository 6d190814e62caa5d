// The class behind CreateCpuKernels(): looks at dtypes and shapes, chooses the
// loops or a oneDNN primitive, and calls them. Spread over four files by kind
// of op: cpu_kernels.cc, linear_ops.cc, image_ops.cc, element_ops.cc.

#ifndef NN_KERNELS_CPU_CPU_KERNEL_SET_H_
#define NN_KERNELS_CPU_CPU_KERNEL_SET_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/onednn.h"
#include "nn/kernels/cpu/widened.h"

namespace troupe::nn::cpu {

class CpuKernelSet final : public Kernels {
 public:
  explicit CpuKernelSet(const CpuKernelOptions& options);

  Device device() const override { return Device{DeviceType::kCpu, 0}; }
  CachingAllocator& allocator() override { return allocator_; }
  std::string Describe() const override;

  absl::Status LinearForward(const Tensor& x, const Tensor& w, const Tensor& b,
                             Tensor& y) override;
  absl::Status LinearBackwardInput(const Tensor& dy, const Tensor& w,
                                   Tensor& dx) override;
  absl::Status LinearBackwardWeight(const Tensor& x, const Tensor& dy,
                                    bool accumulate, Tensor& dw,
                                    Tensor& db) override;

  absl::Status Conv2dForward(const Window2d& window, const Tensor& x,
                             const Tensor& w, const Tensor& b,
                             Tensor& y) override;
  absl::Status Conv2dBackwardInput(const Window2d& window, const Tensor& dy,
                                   const Tensor& w, Tensor& dx) override;
  absl::Status Conv2dBackwardWeight(const Window2d& window, const Tensor& x,
                                    const Tensor& dy, bool accumulate,
                                    Tensor& dw, Tensor& db) override;

  absl::Status MaxPool2dForward(const Window2d& window, const Tensor& x,
                                Tensor& y, Tensor& argmax) override;
  absl::Status MaxPool2dBackward(const Window2d& window, const Tensor& dy,
                                 const Tensor& argmax, Tensor& dx) override;
  absl::Status AvgPool2dForward(const Window2d& window, const Tensor& x,
                                Tensor& y) override;
  absl::Status AvgPool2dBackward(const Window2d& window, const Tensor& dy,
                                 Tensor& dx) override;

  absl::Status ReluForward(const Tensor& x, Tensor& y) override;
  absl::Status ReluBackward(const Tensor& y, const Tensor& dy,
                            Tensor& dx) override;
  absl::Status Dropout(const DropoutMask& mask, const Tensor& x,
                       Tensor& y) override;
  absl::Status EmbeddingForward(const Tensor& rows, const Tensor& table,
                                Tensor& y) override;
  absl::Status EmbeddingBackward(const Tensor& rows, const Tensor& dy,
                                 bool accumulate, Tensor& dtable) override;
  absl::Status NhwcToNchw(const Tensor& x, Tensor& y) override;
  absl::Status NchwToNhwc(const Tensor& x, Tensor& y) override;

  absl::Status SoftmaxCrossEntropy(const Tensor& logits, const Tensor& targets,
                                   std::int64_t ignore_index, Tensor& stats,
                                   Tensor& dlogits) override;
  absl::Status MeanSquaredError(const Tensor& prediction, const Tensor& target,
                                Tensor& stats, Tensor& dprediction) override;

  absl::Status CombineLosses(const Tensor& a, double weight_a, const Tensor& b,
                             double weight_b, Tensor& stats) override;
  absl::Status CountNonFinite(const Tensor& x, Tensor& count) override;
  absl::Status Scale(const Tensor& x, const Tensor& factor, Tensor& y) override;
  absl::Status Add(const Tensor& a, const Tensor& b, Tensor& y) override;
  absl::Status Fill(double value, Tensor& y) override;
  absl::Status Copy(const Tensor& x, Tensor& y) override;
  absl::Status SgdUpdate(const SgdStep& step, const Tensor& grad, Tensor& param,
                         Tensor& momentum) override;

 private:
  // kUnimplemented, naming op, dtype and device.
  absl::Status Unsupported(absl::string_view op, const Tensor& t) const;
  // At least `floats` of 64-byte aligned memory, kept between calls.
  float* Scratch(std::int64_t floats);
  // Made at the first use: a rank of small layers never pays for it.
  OneDnn& GetOneDnn();
  // dw (+)= ...; by oneDNN or our loops.
  absl::Status ConvBackwardWeight(const ImageShape& shape, const Tensor& x,
                                  const Tensor& dy, bool accumulate,
                                  Tensor& dw);

  const CpuKernelOptions options_;
  const Loops& loops_;
  // oneDNN takes the best instructions of the CPU, so it is left out where the
  // caller asked for less than that.
  const bool uses_onednn_;
  CachingAllocator allocator_;
  StoragePtr scratch_;
  std::unique_ptr<OneDnn> onednn_;
};

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_CPU_KERNEL_SET_H_

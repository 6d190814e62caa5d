#include "base/check.h"
#include "nn/kernels/cpu/widening.h"
#include "nn/kernels/pad_source.h"

namespace troupe::nn::cpu {
namespace {

// Returns PadSource() of every row or column.
absl::StatusOr<Tensor> Sources(CpuDevice& cpu, PadMode mode,
                               std::int64_t before, std::int64_t in,
                               std::int64_t out) {
  TROUPE_ASSIGN_OR_RETURN(Tensor sources,
                          Tensor::Create({out}, DType::kI32, cpu.allocator()));
  std::int64_t at = 0;
  for (std::int32_t& source : sources.span<std::int32_t>()) {
    source = static_cast<std::int32_t>(PadSource(mode, at++, before, in));
  }
  return sources;
}

// The extents of images x and padded images y, with the memory of the tables.
class Border {
 public:
  absl::Status Init(CpuDevice& cpu, const Padding2d& padding, In x, In y) {
    TROUPE_ASSIGN_OR_RETURN(
        rows_, Sources(cpu, padding.mode, padding.top, x.dim(1), y.dim(1)));
    TROUPE_ASSIGN_OR_RETURN(
        columns_, Sources(cpu, padding.mode, padding.left, x.dim(2), y.dim(2)));
    shape_ = {x.dim(0),
              x.dim(1),
              x.dim(2),
              x.dim(3),
              y.dim(1),
              y.dim(2),
              padding.left,
              rows_.data<std::int32_t>(),
              columns_.data<std::int32_t>()};
    return absl::OkStatus();
  }
  const PadShape& shape() const { return shape_; }

 private:
  Tensor rows_, columns_;
  PadShape shape_{};
};

absl::Status Pad2dForward(CpuDevice& cpu, const Padding2d& padding, In x,
                          Tensor& y) {
  Border border;
  TROUPE_RETURN_IF_ERROR(border.Init(cpu, padding, x, y));
  cpu.loops().pad_forward(border.shape(), x.data<float>(), y.data<float>());
  return absl::OkStatus();
}

absl::Status Pad2dBackward(CpuDevice& cpu, const Padding2d& padding, In dy,
                           Tensor& dx) {
  Border border;
  TROUPE_RETURN_IF_ERROR(border.Init(cpu, padding, dx, dy));
  cpu.loops().pad_backward(border.shape(), dy.data<float>(), dx.data<float>());
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, Pad2dKernels& ops) {
  BindF32<Pad2dForward>(cpu, ops.Pad2dForward);
  BindF32<Pad2dBackward>(cpu, ops.Pad2dBackward);
}

}  // namespace troupe::nn::cpu

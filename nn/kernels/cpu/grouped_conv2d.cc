#include "base/check.h"
#include "nn/kernels/cpu/conv2d.h"
#include "nn/kernels/cpu/window_shape.h"

namespace troupe::nn::cpu {
namespace {

// Whether each group has one channel in and out. They are computed together,
// with vectors along the channels.
bool IsDepthwise(const Tensor& w, const Tensor& images) {
  return w.dim(1) == 1 && w.dim(0) == images.dim(3);
}

std::int64_t Pixels(const Tensor& images) {
  return images.dim(0) * images.dim(1) * images.dim(2);
}

absl::StatusOr<Tensor> ImagesOf(CpuDevice& cpu, const Tensor& like,
                                std::int64_t channels) {
  return Tensor::Create({like.dim(0), like.dim(1), like.dim(2), channels},
                        DType::kF32, cpu.allocator());
}

// Copies channels [first, first + channels) of `images` into images of their
// own.
absl::StatusOr<Tensor> TakeChannels(CpuDevice& cpu, const Tensor& images,
                                    std::int64_t first, std::int64_t channels) {
  TROUPE_ASSIGN_OR_RETURN(Tensor part, ImagesOf(cpu, images, channels));
  cpu.loops().copy_columns(Pixels(images), channels,
                           images.data<float>() + first, images.dim(3),
                           part.data<float>(), channels);
  return part;
}

void PutChannels(CpuDevice& cpu, const Tensor& part, std::int64_t first,
                 Tensor& images) {
  cpu.loops().copy_columns(Pixels(part), part.dim(3), part.data<float>(),
                           part.dim(3), images.data<float>() + first,
                           images.dim(3));
}

// Returns the elements of group g along the first axis; undefined for an
// undefined tensor.
Tensor OfGroup(const Tensor& t, std::int64_t g, std::int64_t groups) {
  if (!t.defined()) return Tensor();
  const std::int64_t count = t.dim(0) / groups;
  return t.Slice(g * count, (g + 1) * count);
}

}  // namespace

absl::Status GroupedConv2dForward(CpuDevice& cpu, const Window2d& window, In x,
                                  In w, In b, Tensor& y) {
  if (IsDepthwise(w, x)) {
    const ImageShape shape = ImageShapeOf(window, x.shape(), y.shape());
    TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                            cpu.Scratch(cpu.loops().depthwise_scratch(shape)));
    cpu.loops().depthwise_forward(shape, x.data<float>(), w.data<float>(),
                                  DataOrNull(b), y.data<float>(), scratch);
    return absl::OkStatus();
  }
  const std::int64_t groups = GroupsOf(x, w), C = w.dim(1);
  const std::int64_t O = w.dim(0) / groups;
  TROUPE_ASSIGN_OR_RETURN(Tensor y_of_group, ImagesOf(cpu, y, O));
  for (std::int64_t g = 0; g < groups; ++g) {
    TROUPE_ASSIGN_OR_RETURN(const Tensor x_of_group,
                            TakeChannels(cpu, x, g * C, C));
    TROUPE_RETURN_IF_ERROR(
        DenseConv2dForward(cpu, window, x_of_group, OfGroup(w, g, groups),
                           OfGroup(b, g, groups), y_of_group));
    PutChannels(cpu, y_of_group, g * O, y);
  }
  return absl::OkStatus();
}

absl::Status GroupedConv2dBackwardInput(CpuDevice& cpu, const Window2d& window,
                                        In dy, In w, Tensor& dx) {
  if (IsDepthwise(w, dx)) {
    const ImageShape shape = ImageShapeOf(window, dx.shape(), dy.shape());
    TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                            cpu.Scratch(cpu.loops().depthwise_scratch(shape)));
    cpu.loops().depthwise_backward_input(
        shape, dy.data<float>(), w.data<float>(), dx.data<float>(), scratch);
    return absl::OkStatus();
  }
  const std::int64_t groups = GroupsOf(dx, w), C = w.dim(1);
  const std::int64_t O = w.dim(0) / groups;
  TROUPE_ASSIGN_OR_RETURN(Tensor dx_of_group, ImagesOf(cpu, dx, C));
  for (std::int64_t g = 0; g < groups; ++g) {
    TROUPE_ASSIGN_OR_RETURN(const Tensor dy_of_group,
                            TakeChannels(cpu, dy, g * O, O));
    TROUPE_RETURN_IF_ERROR(DenseConv2dBackwardInput(
        cpu, window, dy_of_group, OfGroup(w, g, groups), dx_of_group));
    PutChannels(cpu, dx_of_group, g * C, dx);
  }
  return absl::OkStatus();
}

absl::Status GroupedConv2dBackwardWeight(CpuDevice& cpu, const Window2d& window,
                                         In x, In dy, bool accumulate,
                                         Tensor& dw, Tensor& db) {
  if (IsDepthwise(dw, x)) {
    const ImageShape shape = ImageShapeOf(window, x.shape(), dy.shape());
    TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                            cpu.Scratch(cpu.loops().depthwise_scratch(shape)));
    cpu.loops().depthwise_backward_weight(shape, x.data<float>(),
                                          dy.data<float>(), accumulate,
                                          dw.data<float>(), scratch);
    if (!db.defined()) return absl::OkStatus();
    cpu.loops().column_sums(Pixels(dy), dy.dim(3), dy.data<float>(), accumulate,
                            db.data<float>());
    return absl::OkStatus();
  }
  const std::int64_t groups = GroupsOf(x, dw), C = dw.dim(1);
  const std::int64_t O = dw.dim(0) / groups;
  for (std::int64_t g = 0; g < groups; ++g) {
    TROUPE_ASSIGN_OR_RETURN(const Tensor x_of_group,
                            TakeChannels(cpu, x, g * C, C));
    TROUPE_ASSIGN_OR_RETURN(const Tensor dy_of_group,
                            TakeChannels(cpu, dy, g * O, O));
    Tensor dw_of_group = OfGroup(dw, g, groups);
    Tensor db_of_group = OfGroup(db, g, groups);
    TROUPE_RETURN_IF_ERROR(DenseConv2dBackwardWeight(cpu, window, x_of_group,
                                                     dy_of_group, accumulate,
                                                     dw_of_group, db_of_group));
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn::cpu

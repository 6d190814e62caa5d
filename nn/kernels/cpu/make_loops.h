// The table of this instruction set: included once by each loops_*.cc.

#ifndef NN_KERNELS_CPU_MAKE_LOOPS_H_
#define NN_KERNELS_CPU_MAKE_LOOPS_H_

#include "nn/kernels/cpu/conv2d_loops.h"
#include "nn/kernels/cpu/convert_loops.h"
#include "nn/kernels/cpu/elementwise_loops.h"
#include "nn/kernels/cpu/linear_loops.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/loss_loops.h"
#include "nn/kernels/cpu/optimizer_loops.h"
#include "nn/kernels/cpu/pool2d_loops.h"

namespace troupe::nn::cpu {
namespace {

inline void Transpose(Index rows, Index cols, const float* x, float* y) {
  TransposeMatrix(rows, cols, x, cols, y, rows, /*pad=*/false, nullptr);
}

constexpr Loops MakeLoops(const char* name) {
  Loops loops{};
  loops.name = name;
  loops.linear_scratch = LinearScratch;
  loops.conv_scratch = ConvScratch;
  loops.linear_forward = LinearForward;
  loops.linear_backward_input = LinearBackwardInput;
  loops.linear_backward_weight = LinearBackwardWeight;
  loops.column_sums = ColumnSums;
  loops.add_to_rows = AddToRows;
  loops.conv_forward = ConvForward;
  loops.conv_backward_input = ConvBackwardInput;
  loops.conv_backward_weight = ConvBackwardWeight;
  loops.max_pool_forward = MaxPoolForward;
  loops.max_pool_backward = MaxPoolBackward;
  loops.avg_pool_forward = AvgPoolForward;
  loops.avg_pool_backward = AvgPoolBackward;
  loops.relu_forward = ReluForward;
  loops.relu_backward = ReluBackward;
  loops.scale = Scale;
  loops.add = Add;
  loops.fill = Fill;
  loops.transpose = Transpose;
  loops.sgd = Sgd;
  loops.widen_bf16 = WidenBF16;
  loops.narrow_bf16 = NarrowBF16;
  loops.widen_f16 = WidenF16;
  loops.narrow_f16 = NarrowF16;
  loops.squared_error = SquaredError;
  loops.cross_entropy_row = CrossEntropyRow;
  return loops;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_MAKE_LOOPS_H_

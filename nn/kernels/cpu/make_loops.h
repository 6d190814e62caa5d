// The table of this instruction set: included once by each loops_*.cc.

#ifndef NN_KERNELS_CPU_MAKE_LOOPS_H_
#define NN_KERNELS_CPU_MAKE_LOOPS_H_

#include "nn/kernels/cpu/attention_backward_loops.h"
#include "nn/kernels/cpu/attention_loops.h"
#include "nn/kernels/cpu/binary_loops.h"
#include "nn/kernels/cpu/channel_loops.h"
#include "nn/kernels/cpu/conv2d_loops.h"
#include "nn/kernels/cpu/convert_loops.h"
#include "nn/kernels/cpu/depthwise_loops.h"
#include "nn/kernels/cpu/elementwise_loops.h"
#include "nn/kernels/cpu/linear_loops.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/loss_loops.h"
#include "nn/kernels/cpu/norm_loops.h"
#include "nn/kernels/cpu/optimizer_loops.h"
#include "nn/kernels/cpu/pad2d_loops.h"
#include "nn/kernels/cpu/pool2d_loops.h"
#include "nn/kernels/cpu/rotary_loops.h"
#include "nn/kernels/cpu/softmax_loops.h"
#include "nn/kernels/cpu/unary_loops.h"

namespace troupe::nn::cpu {
namespace {

inline void Transpose(Index rows, Index cols, const float* x, float* y) {
  TransposeMatrix(rows, cols, x, cols, y, rows, /*pad=*/false, nullptr);
}

inline void TransposeStrided(Index rows, Index cols, const float* x,
                             Index x_row, float* y, Index y_row) {
  TransposeMatrix(rows, cols, x, x_row, y, y_row, /*pad=*/false, nullptr);
}

inline void CopyColumns(Index n, Index m, const float* from, Index ld_from,
                        float* to, Index ld_to) {
  for (Index i = 0; i < n; ++i) {
    CopyFloats(m, from + i * ld_from, to + i * ld_to);
  }
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
  loops.copy_columns = CopyColumns;
  loops.depthwise_scratch = DepthwiseScratch;
  loops.depthwise_forward = DepthwiseForward;
  loops.depthwise_backward_input = DepthwiseBackwardInput;
  loops.depthwise_backward_weight = DepthwiseBackwardWeight;
  loops.pad_forward = PadForward;
  loops.pad_backward = PadBackward;
  loops.attention_scratch = AttentionScratch;
  loops.attention_forward = AttentionForward;
  loops.attention_backward = AttentionBackward;
  loops.rotate_halves = RotateHalves;
  loops.rotate_pairs = RotatePairs;
  loops.max_pool_forward = MaxPoolForward;
  loops.max_pool_backward = MaxPoolBackward;
  loops.avg_pool_forward = AvgPoolForward;
  loops.avg_pool_backward = AvgPoolBackward;
  loops.channel_sums = ChannelSums;
  loops.channel_forward = ChannelForward;
  loops.channel_gradient_sums = ChannelGradientSums;
  loops.channel_backward = ChannelBackward;
  loops.norm_rows_forward = NormRowsForward;
  loops.norm_rows_backward_input = NormRowsBackwardInput;
  loops.norm_rows_backward_weight = NormRowsBackwardWeight;
  loops.adaptive_avg_pool_forward = AdaptiveAvgPoolForward;
  loops.adaptive_avg_pool_backward = AdaptiveAvgPoolBackward;
  loops.relu_forward = ReluForward;
  loops.relu_backward = ReluBackward;
  loops.scale = Scale;
  loops.add = Add;
  loops.fill = Fill;
  loops.unary_forward = UnaryForward;
  loops.unary_backward = UnaryBackward;
  loops.binary = Binary;
  loops.softmax_row = SoftmaxRow;
  loops.log_softmax_row = LogSoftmaxRow;
  loops.softmax_row_backward = SoftmaxRowBackward;
  loops.log_softmax_row_backward = LogSoftmaxRowBackward;
  loops.sum_of_products = SumOfProducts;
  loops.transpose = Transpose;
  loops.transpose_strided = TransposeStrided;
  loops.sgd = Sgd;
  loops.adam = Adam;
  loops.lamb_direction = LambDirection;
  loops.lars = Lars;
  loops.add_scaled = AddScaled;
  loops.move_towards = MoveTowards;
  loops.clip = Clip;
  loops.square_sum = SumOfSquares;
  loops.widen_bf16 = WidenBF16;
  loops.narrow_bf16 = NarrowBF16;
  loops.widen_f16 = WidenF16;
  loops.narrow_f16 = NarrowF16;
  loops.squared_error = SquaredError;
  loops.cross_entropy_row = CrossEntropyRow;
  loops.weighted_cross_entropy_row = WeightedCrossEntropyRow;
  loops.absolute_error = AbsoluteError;
  loops.huber = Huber;
  loops.bce_with_logits = BceWithLogits;
  return loops;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_MAKE_LOOPS_H_

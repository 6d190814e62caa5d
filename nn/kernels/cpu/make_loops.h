// The table of this instruction set: included once by each loops_*.cc. The
// header of each family's loops sets their entries.

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
  loops.copy_columns = CopyColumns;
  loops.transpose = Transpose;
  loops.transpose_strided = TransposeStrided;
  SetAttentionBackwardLoops(loops);
  SetAttentionLoops(loops);
  SetBinaryLoops(loops);
  SetChannelLoops(loops);
  SetConv2dLoops(loops);
  SetConvertLoops(loops);
  SetDepthwiseLoops(loops);
  SetElementwiseLoops(loops);
  SetLinearLoops(loops);
  SetLossLoops(loops);
  SetNormLoops(loops);
  SetOptimizerLoops(loops);
  SetPad2dLoops(loops);
  SetPool2dLoops(loops);
  SetRotaryLoops(loops);
  SetSoftmaxLoops(loops);
  SetUnaryLoops(loops);
  return loops;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_MAKE_LOOPS_H_

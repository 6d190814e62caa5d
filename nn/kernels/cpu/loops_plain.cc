#include <cmath>

#include "nn/kernels/cpu/general_loops.h"
#include "nn/kernels/cpu/loops.h"

namespace troupe::nn::cpu {
namespace {

Index NoLinearScratch(Index, Index, Index) { return 0; }
Index NoConvScratch(const ImageShape&) { return 0; }

void LinearForward(Index n, Index k, Index m, const float* x, const float* w,
                   const float* b, float* y, float*) {
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      float sum = b ? b[j] : 0.0f;
      for (Index l = 0; l < k; ++l) sum += x[i * k + l] * w[j * k + l];
      y[i * m + j] = sum;
    }
  }
}

void LinearBackwardInput(Index n, Index k, Index m, const float* dy,
                         const float* w, float* dx, float*) {
  for (Index i = 0; i < n * k; ++i) dx[i] = 0.0f;
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      const float g = dy[i * m + j];
      for (Index l = 0; l < k; ++l) dx[i * k + l] += g * w[j * k + l];
    }
  }
}

void LinearBackwardWeight(Index n, Index k, Index m, const float* x,
                          const float* dy, bool accumulate, float* dw, float*) {
  if (!accumulate) {
    for (Index i = 0; i < m * k; ++i) dw[i] = 0.0f;
  }
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      const float g = dy[i * m + j];
      for (Index l = 0; l < k; ++l) dw[j * k + l] += g * x[i * k + l];
    }
  }
}

void ColumnSums(Index n, Index m, const float* x, bool accumulate,
                float* sums) {
  if (!accumulate) {
    for (Index j = 0; j < m; ++j) sums[j] = 0.0f;
  }
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) sums[j] += x[i * m + j];
  }
}

void ReluForward(Index n, const float* x, float* y) {
  for (Index i = 0; i < n; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

void ReluBackward(Index n, const float* y, const float* dy, float* dx) {
  for (Index i = 0; i < n; ++i) dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

void Add(Index n, const float* a, const float* b, float* y) {
  for (Index i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

void Fill(Index n, float value, float* y) {
  for (Index i = 0; i < n; ++i) y[i] = value;
}

void Transpose(Index rows, Index cols, const float* x, float* y) {
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) y[j * rows + i] = x[i * cols + j];
  }
}

void Sgd(Index n, const SgdScalars& step, const float* grad, float* param,
         float* momentum) {
  for (Index i = 0; i < n; ++i) {
    float g = grad[i] * step.inverse_divisor + step.weight_decay * param[i];
    if (momentum) {
      const float buf = step.first_step
                            ? g
                            : step.momentum * momentum[i] + step.undampened * g;
      momentum[i] = buf;
      g = step.nesterov ? g + step.momentum * buf : buf;
    }
    param[i] -= step.lr * g;
  }
}

double SquaredError(Index n, const float* prediction, const float* target,
                    float* d) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) {
    const float error = prediction[i] - target[i];
    sum += static_cast<double>(error) * error;
    if (d) d[i] = 2.0f * error;
  }
  return sum;
}

double CrossEntropyRow(Index classes, const float* logits, Index target,
                       float* d, bool* hit) {
  Index best = 0;
  for (Index i = 1; i < classes; ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  *hit = best == target;
  double sum = 0;
  for (Index i = 0; i < classes; ++i) sum += std::exp(logits[i] - logits[best]);
  if (d) {
    for (Index i = 0; i < classes; ++i) {
      d[i] = static_cast<float>(std::exp(logits[i] - logits[best]) / sum);
    }
    d[target] -= 1.0f;
  }
  return std::log(sum) + logits[best] - logits[target];
}

}  // namespace

const Loops& PlainLoops() {
  static const Loops loops = {
      "plain",
      1,
      NoLinearScratch,
      NoConvScratch,
      LinearForward,
      LinearBackwardInput,
      LinearBackwardWeight,
      ColumnSums,
      GeneralConvForward,
      GeneralConvBackwardInput,
      GeneralConvBackwardWeight,
      GeneralMaxPoolForward,
      GeneralMaxPoolBackward,
      GeneralAvgPoolForward,
      GeneralAvgPoolBackward,
      ReluForward,
      ReluBackward,
      Add,
      Fill,
      Transpose,
      Sgd,
      SquaredError,
      CrossEntropyRow,
  };
  return loops;
}

}  // namespace troupe::nn::cpu

// Batch norm (Ioffe and Szegedy 2015, arXiv:1502.03167) of x[N, ..., C], by
// channel over all samples and positions:
//
//     y = (x - mean) / sqrt(var + eps) * w + b
//
//   BatchNormOptions options;
//   options.relu = true;
//   Tensor y = ops::BatchNorm(ctx, x, w, b, running, options);
//
// In training, mean and var are those of the batch, and `running` moves towards
// them if ctx.updates_buffers(): by `momentum`, or without one to the average
// of all batches; the running variance divides by the number of elements less
// one. Evaluation uses the running statistics, or the batch's if `running` is
// undefined. A batch without samples changes nothing.
//
// `relu` and `residual` give max(0, y + residual) in the same pass over memory,
// as at the end of a ResNet block: in f32 the bits of three separate ops, in 16
// bits rounded once.
//
// `sync_axis` makes it synchronised batch norm: in training, sums and counts
// (f64) are added up over the ranks along that axis of the mesh, in forward and
// in backward, so that ranks may hold different numbers of samples. A rank
// without peers computes plain batch norm. Gradients of w and b are those of
// this rank's samples.
//
// x of rank 2 or more; w and b [C] or both undefined; one dtype. Errors (sticky
// in ctx): kInvalidArgument with the shapes; "Expected more than 1 value per
// channel when training"; errors of the peers (nn/collectives.h).

#ifndef NN_OPS_BATCH_NORM_H_
#define NN_OPS_BATCH_NORM_H_

#include <optional>
#include <string>

#include "nn/autograd/context.h"

namespace troupe::nn::ops {

struct BatchNormOptions {
  double eps = 1e-5;
  // Weight of a new batch in the running statistics; without one, all batches
  // weigh the same.
  std::optional<double> momentum = 0.1;
  bool relu = false;
  // Axis to synchronise over, such as "dp" for the replicas. Empty: none.
  std::string sync_axis;
};

// Values of a module's buffers, all or none: f32, or f64 for f64 models.
struct RunningStats {
  Tensor mean, var;    // [C]
  Tensor num_batches;  // i64, one element
};

Tensor BatchNorm(Context& ctx, const Tensor& x, const Tensor& w,
                 const Tensor& b, const RunningStats& running,
                 const BatchNormOptions& options,
                 const Tensor& residual = Tensor());

}  // namespace troupe::nn::ops

#endif  // NN_OPS_BATCH_NORM_H_

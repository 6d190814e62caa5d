// Kernels of batch norm, over rows x[R, C] of C channels. Statistics begin as
// sums, which ranks can add up between two calls:
//
//   status = kernels.BatchNormSums(x, sums);              // these rows' sums
//   // synchronised: all ranks add up their `sums` here
//   status = kernels.BatchNormStats(sums, rule, stats, running_mean,
//                                   running_var, num_batches);
//   status = kernels.BatchNormForward(x, stats, w, b, residual, relu, y);
//
// `sums` f64 [2 C + 1]: two sums for each channel (all of the first, then all
// of the second), and the number of rows. `stats` f64 [2, C]: means, then
// rstd = 1 / sqrt(var + eps). The weight and bias may be undefined.
//
// `relu`: y = max(., 0), and backward masks dy by it, recomputing the value
// from x. Sums of squares in f64 keep the variance of f32 and 16-bit numbers
// exact to f32 up to means of 10^4 standard deviations. Those of f64 numbers
// would not be exact to f64, so these have a second pass:
//
//   status = kernels.BatchNormSquares(x, sums, squares);  // around the mean
//   // all ranks add up their `squares`; rule.centered is true
//   status = kernels.BatchNormStats(squares, rule, stats, mean, var, batches);

#ifndef NN_KERNELS_BATCH_NORM_H_
#define NN_KERNELS_BATCH_NORM_H_

#include "nn/kernels/op.h"

namespace troupe::nn {

struct BatchNormRule {
  double eps = 1e-5;
  // Weight of the new statistics in the running ones. Below 0: running
  // statistics are averages over all batches.
  double momentum = 0.1;
  // Whether the second sums are those of (x - mean)^2, not of x^2.
  bool centered = false;
};

struct BatchNormKernels {
  // sums = {sums of x, sums of x^2, number of rows}.
  Op<absl::Status(In x, FixedOut sums)> BatchNormSums{"BatchNormSums"};

  // squares = {sums of x, sums of (x - mean)^2, number of rows} of these rows,
  // with the means of the rows of `sums`, which may be more. For f64, which
  // `reference` alone computes: other dtypes need no second pass.
  Op<absl::Status(In x, FixedIn sums, FixedOut squares)> BatchNormSquares{
      "BatchNormSquares"};

  // Computes statistics from `sums`, with the variance divided by the number of
  // rows. If running_mean (f32 or f64 [C]) is defined, it and running_var of
  // its dtype move towards the new ones (a variance divided by rows - 1), and
  // num_batches (i64, one element) is incremented; without rows, none of them
  // changes.
  Op<absl::Status(FixedIn sums, const BatchNormRule& rule, FixedOut stats,
                  FixedOut running_mean, FixedOut running_var,
                  FixedOut num_batches)>
      BatchNormStats{"BatchNormStats"};

  // Computes statistics from running ones, for an evaluation.
  Op<absl::Status(FixedIn running_mean, FixedIn running_var, double eps,
                  FixedOut stats)>
      BatchNormRunningStats{"BatchNormRunningStats"};

  // y = (x - mean) rstd w + b, plus `residual` [R, C] if it is defined, then
  // max(., 0) if `relu`.
  Op<absl::Status(In x, FixedIn stats, In w, In b, In residual, bool relu,
                  Out y)>
      BatchNormForward{"BatchNormForward"};

  // sums = {sums of dz, sums of dz (x - mean) rstd, number of rows}; dz is dy,
  // and 0 where (x - mean) rstd w + b <= 0 if `relu`.
  Op<absl::Status(In x, FixedIn stats, In w, In b, In dy, bool relu,
                  FixedOut sums)>
      BatchNormBackwardSums{"BatchNormBackwardSums"};

  // With n rows and xhat = (x - mean) rstd: dx = w rstd (dz - sums(dz) / n -
  // xhat sums(dz xhat) / n); without the terms of sums if these are undefined:
  // the statistics were constants.
  Op<absl::Status(In x, FixedIn stats, In w, In b, In dy, bool relu,
                  FixedIn sums, Out dx)>
      BatchNormBackwardInput{"BatchNormBackwardInput"};

  // dw (+)= sums(dz xhat);  db (+)= sums(dz), which may be undefined.
  Op<absl::Status(FixedIn sums, bool accumulate, Grad dw, Grad db)>
      BatchNormBackwardWeight{"BatchNormBackwardWeight"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = BatchNormKernels;
    VisitOps<K>(visit, &K::BatchNormSums, &K::BatchNormSquares,
                &K::BatchNormStats, &K::BatchNormRunningStats,
                &K::BatchNormForward, &K::BatchNormBackwardSums,
                &K::BatchNormBackwardInput, &K::BatchNormBackwardWeight);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_BATCH_NORM_H_

// Statistics of one channel from its sums, in f64, shared by all kernel sets.
//
//   const BatchMoments batch = MomentsOf(sum, sum_of_squares, rows);
//   stats_mean = batch.mean;
//   stats_rstd = RstdOf(batch.var, eps);
//   running_var = Towards(running_var, batch.unbiased_var, weight);
//
// Host and device code.

#ifndef NN_KERNELS_BATCH_NORM_STATS_H_
#define NN_KERNELS_BATCH_NORM_STATS_H_

#include <cmath>

#if defined(__CUDACC__)
#define TROUPE_HOST_DEVICE __host__ __device__
#else
#define TROUPE_HOST_DEVICE
#endif

namespace troupe::nn {

struct BatchMoments {
  double mean, var, unbiased_var;
};

// Returns the moments of `rows` rows; zeros if there are none. `squares` is the
// sum of (x - mean)^2 if `is_centered`, otherwise of x^2.
TROUPE_HOST_DEVICE inline BatchMoments MomentsOf(double sum, double squares,
                                                 double rows,
                                                 bool is_centered = false) {
  if (rows == 0) return {0, 0, 0};
  const double mean = sum / rows;
  double centered = is_centered ? squares : squares - sum * mean;
  // Rounding may leave it below 0.
  centered = centered < 0 ? 0 : centered;
  const double divisor = rows > 1 ? rows - 1 : 1;
  return {mean, centered / rows, centered / divisor};
}

TROUPE_HOST_DEVICE inline double RstdOf(double var, double eps) {
  return 1 / sqrt(var + eps);
}

// Returns the weight of a new batch in running statistics over `batches`
// batches.
TROUPE_HOST_DEVICE inline double WeightOfBatch(double momentum,
                                               double batches) {
  return momentum < 0 ? 1 / (batches + 1) : momentum;
}

TROUPE_HOST_DEVICE inline double Towards(double running, double batch,
                                         double weight) {
  return running * (1 - weight) + batch * weight;
}

}  // namespace troupe::nn

#endif  // NN_KERNELS_BATCH_NORM_STATS_H_

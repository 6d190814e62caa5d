// Kernels of norms within each sample: layer, group and RMS norm.
//
//   NormRule rule;
//   rule.groups = 4;
//   status = kernels.NormForward(rule, x, w, b, y, stats);
//
// x[N, S, C]: N samples of S positions with C channels each. The channels of a
// sample are divided into `groups` groups of C / groups, and each group is
// normalised over all its positions. A layer norm over D features is one group
// at one position: [N, 1, D].
//
// The weight, the bias and their gradients may be undefined.

#ifndef NN_KERNELS_NORM_H_
#define NN_KERNELS_NORM_H_

#include <cstdint>

#include "nn/kernels/op.h"

namespace troupe::nn {

struct NormRule {
  std::int64_t groups = 1;
  // False: the mean is not subtracted, and the variance is taken around 0 (RMS
  // norm).
  bool centered = true;
  double eps = 1e-5;
};

struct NormKernels {
  // y = (x - mean) rstd w[C] + b[C]; rstd = 1 / sqrt(var + eps), var divided by
  // the number of elements. `stats` f64 [N, groups, 2]: mean (0 if not
  // centered) and rstd of each group.
  Op<absl::Status(const NormRule& rule, In x, In w, In b, Out y,
                  FixedOut stats)>
      NormForward{"NormForward"};

  // A residual connection and the norm behind it, in one pass over memory:
  // sum = a + b, then y and stats of sum as in NormForward(). Only for rows:
  // [N, 1, D] in one group.
  Op<absl::Status(const NormRule& rule, In a, In b, In w, In bias, Out sum,
                  Out y, FixedOut stats)>
      AddNormForward{"AddNormForward"};

  // With g = w dy, xhat = (x - mean) rstd and means over the group: dx = rstd
  // (g - mean(g) - xhat mean(g xhat)); the first mean is 0 if not centered.
  Op<absl::Status(const NormRule& rule, In x, FixedIn stats, In w, In dy,
                  Out dx)>
      NormBackwardInput{"NormBackwardInput"};

  // The same, added to the gradient of a residual connection: dx = base + (the
  // dx above, rounded to its dtype). Only for rows.
  Op<absl::Status(const NormRule& rule, In x, FixedIn stats, In w, In dy,
                  In base, Out dx)>
      AddNormBackwardInput{"AddNormBackwardInput"};

  // dw[C] (+)= sum of dy xhat over samples and positions;  db[C] (+)= sum of
  // dy.
  Op<absl::Status(const NormRule& rule, In x, FixedIn stats, In dy,
                  bool accumulate, Grad dw, Grad db)>
      NormBackwardWeight{"NormBackwardWeight"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = NormKernels;
    VisitOps<K>(visit, &K::NormForward, &K::AddNormForward,
                &K::NormBackwardInput, &K::AddNormBackwardInput,
                &K::NormBackwardWeight);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_NORM_H_

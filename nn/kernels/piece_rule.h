// Loss and gradient of one row of split logits by the sums over all ranks,
// shared by the kernels of hosts (nn/kernels/loss.h, PieceCrossEntropy).
//
//   const PieceRule by(rule, piece, weight);   // weight(c): of class c
//   loss += by.Loss(own, sums_of_row);

#ifndef NN_KERNELS_PIECE_RULE_H_
#define NN_KERNELS_PIECE_RULE_H_

#include <cmath>
#include <cstdint>

#include "nn/kernels/loss.h"

namespace troupe::nn {

struct PieceRule {
  template <typename Weight>
  PieceRule(const CrossEntropyRule& rule, const ClassPiece& piece,
            Weight weight)
      : share(rule.label_smoothing / static_cast<double>(piece.classes)) {
    if (share == 0) return;
    for (std::int64_t c = 0; c < piece.classes; ++c) all_weights += weight(c);
  }

  // Returns the loss of a row whose target has the weight `own`, smoothing
  // taken off.
  double Loss(double own, const double* sums) const {
    const double log_sum = std::log(sums[kExpSum]);
    return own * (log_sum - sums[kTargetLogit]) +
           share * (all_weights * log_sum - sums[kWeightedSum]);
  }
  // Returns the factor of e^(x - m) in the gradient.
  double Scale(double own, const double* sums) const {
    return (own + share * all_weights) / sums[kExpSum];
  }

  double share = 0;        // smoothing of one class
  double all_weights = 0;  // sum of the weights; 0 without smoothing
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_PIECE_RULE_H_

// Drops elements at random in training (torch.nn.Dropout).
//
//   Dropout dropout(0.1);
//   Tensor y = dropout(ctx, x);        // x itself in evaluation
//
// Between the two layers of a cut pair (nn/modules/linear.h), x is a rank's
// piece of the outputs; between such pairs, the rank's own tokens if ranks
// share these. set_parallel() drops of a part what it drops of the whole:
//
//   dropout.set_parallel(Dropout::kFeatures);       // within a pair
//   dropout.set_parallel(Dropout::kTokens);         // between pairs

#ifndef NN_MODULES_DROPOUT_H_
#define NN_MODULES_DROPOUT_H_

#include "nn/modules/module.h"
#include "nn/ops/dropout.h"

namespace troupe::nn {

class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5) : p_(p) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    if (at_.size <= 1) return ops::Dropout(ctx, x, p_);
    return ops::DropoutOfPart(
        ctx, x, p_,
        parallel_ == kTokens ? ops::PieceOfTokens(x, at_)
                             : ops::PieceOfLastAxis(x, at_.coord, at_.size));
  }

  // Axis of x that may be cut among the ranks along "tp": none, the last one,
  // or the tokens of x [N, T, ...].
  enum Parallel { kWhole, kFeatures, kTokens };
  void set_parallel(Parallel parallel) { parallel_ = parallel; }
  absl::Status Localise(absl::Span<const AxisPlace> places) override {
    if (parallel_ == kFeatures) at_ = PlaceAlong(places, "tp");
    if (parallel_ == kTokens) at_ = TokensAlong(places, "tp");
    return absl::OkStatus();
  }

 private:
  const double p_;
  Parallel parallel_ = kWhole;
  AxisPlace at_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_DROPOUT_H_

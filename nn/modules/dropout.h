// Drops elements at random in training (torch.nn.Dropout).
//
//   Dropout dropout(0.1);
//   Tensor y = dropout(ctx, x);        // x itself in evaluation
//
// Between the two layers of a cut pair (nn/modules/linear.h), x is a rank's
// piece of the outputs, of which set_parallel() drops what it drops of the
// whole:
//
//   dropout.set_parallel(true);

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
    return ops::DropoutOfPart(ctx, x, p_,
                              ops::PieceOfLastAxis(x, at_.coord, at_.size));
  }

  // Whether the last axis of x is cut among the ranks along "tp".
  void set_parallel(bool parallel) { parallel_ = parallel; }
  absl::Status Localise(absl::Span<const AxisPlace> places) override {
    if (parallel_) at_ = PlaceAlong(places, "tp");
    return absl::OkStatus();
  }

 private:
  const double p_;
  bool parallel_ = false;
  AxisPlace at_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_DROPOUT_H_

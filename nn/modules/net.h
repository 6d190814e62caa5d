// A module whose Forward() reads as in PyTorch: one Var in, one Var out.
//
//   class Digits : public Net {
//    public:
//     Var Forward(Var x) override {
//       x = pool_(conv_(x).Relu());
//       return fc_(x.Flatten());
//     }
//    private:
//     Conv2d& conv_ = Add<Conv2d>("conv", 1, 6, 5);
//     MaxPool2d pool_{2};                 // has no parameters: a plain member
//     Linear& fc_ = Add<Linear>("fc", 6 * 12 * 12, 10);
//   };
//   Var logits = net(Var(ctx, images));     // [N, 28, 28, 1] to [N, 10]
//
// Layers with parameters are added under a name, which saved models have too;
// one that is a plain member is refused at the first call. A Net is a Module:
// it can be part of another one, of a Sequential or a job. An operation that
// fails ends Forward(); the error has the path of the module.
//
// A Net keeps no Var from one call to the next: contexts may be shorter.

#ifndef NN_MODULES_NET_H_
#define NN_MODULES_NET_H_

#include "nn/autograd/var.h"
#include "nn/autograd/var_math.h"
#include "nn/modules/module.h"

namespace troupe::nn {

class Net : public Module {
 public:
  virtual Var Forward(Var x) = 0;

 private:
  Tensor Forward(Context& ctx, const Tensor& x) final {
    return Forward(Var(ctx, x));
  }
};

}  // namespace troupe::nn

#endif  // NN_MODULES_NET_H_

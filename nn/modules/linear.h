// y = x W^T + b (torch.nn.Linear).
//
//   Linear fc(784, 512);             // weight [512, 784], bias [512]
//   Tensor y = fc(ctx, x);           // x [..., 784] -> y [..., 512]
//
// Default initialisation as in PyTorch: weight and bias from U(-1/sqrt(in),
// 1/sqrt(in)) (kaiming_uniform with a = sqrt(5); He et al. 2015,
// arXiv:1502.01852).

#ifndef NN_MODULES_LINEAR_H_
#define NN_MODULES_LINEAR_H_

#include <cstdint>

#include "nn/modules/module.h"

namespace troupe::nn {

class Linear : public Module {
 public:
  struct Options {
    bool bias = true;
    DType dtype = DType::kF32;
  };
  Linear(std::int64_t in_features, std::int64_t out_features)
      : Linear(in_features, out_features, Options()) {}
  Linear(std::int64_t in_features, std::int64_t out_features,
         const Options& options);

  Tensor Forward(Context& ctx, const Tensor& x) override;

 private:
  Parameter& weight_;
  Parameter* bias_ = nullptr;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_LINEAR_H_

// Norms within each sample (torch.nn.LayerNorm, GroupNorm, RMSNorm);
// nn/ops/norm.h has the formulas.
//
//   LayerNorm norm(512);                    // weight [512], bias [512]
//   LayerNorm over_images(Shape{8, 8, 3});  // weight [8, 8, 3]
//   GroupNorm groups(/*groups=*/32, /*channels=*/64);
//   RMSNorm rms(512);                       // weight [512]
//   Tensor y = norm(ctx, x);                // x's shape
//   auto [sum, normed] = norm.AfterAdd(ctx, x, branch);  // sum is x + branch
//   norm.set_parallel(true);                // x may be a rank's tokens
//
// AfterAdd() computes a residual connection and the LayerNorm or RMSNorm behind
// it in one pass over memory, with the bits of separate ops.
//
// Between layers that ranks along "tp" share (nn/modules/linear.h), x of a
// LayerNorm or RMSNorm over the last axis may be the rank's own tokens, if
// ranks share these (nn/ops/tokens.h) and set_parallel() was called.
//
// Weights begin as ones, biases as zeros, as in PyTorch. Groups divide the last
// axis: images are (N, H, W, C).

#ifndef NN_MODULES_NORM_H_
#define NN_MODULES_NORM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "nn/modules/module.h"
#include "nn/ops/norm.h"

namespace troupe::nn {

// A norm over the last axes, which can follow a residual connection.
class RowNorm : public Module {
 public:
  // Returns x + branch, and the norm of it.
  ops::SumAndNorm AfterAdd(Context& ctx, const Tensor& x, const Tensor& branch);
  // Takes {x} like Forward(), or {x, branch} like AfterAdd().
  TensorList ForwardMany(Context& ctx, absl::Span<const Tensor> xs) override;

  // Whether x may be a rank's own tokens.
  void set_parallel(bool parallel) { parallel_ = parallel; }
  absl::Status Localise(absl::Span<const AxisPlace> places) override;

 protected:
  // Declares a weight or a bias.
  Parameter* DeclareAffine(const char* name, const Shape& shape, double initial,
                           DType dtype);

 private:
  virtual ops::SumAndNorm ForwardAfterAdd(Context& ctx, const Tensor& x,
                                          const Tensor& branch) = 0;

  bool parallel_ = false;
  std::vector<Parameter*> affine_;
};

class LayerNorm : public RowNorm {
 public:
  struct Options {
    double eps = 1e-5;
    bool elementwise_affine = true;
    bool bias = true;  // if elementwise_affine
    DType dtype = DType::kF32;
  };
  // Normalises over the last axes, which have the shape `normalized`.
  explicit LayerNorm(const Shape& normalized)
      : LayerNorm(normalized, Options()) {}
  LayerNorm(const Shape& normalized, const Options& options);
  // Normalises over the last axis.
  explicit LayerNorm(std::int64_t features) : LayerNorm(Shape{features}) {}
  LayerNorm(std::int64_t features, const Options& options)
      : LayerNorm(Shape{features}, options) {}

  Tensor Forward(Context& ctx, const Tensor& x) override;

 private:
  ops::SumAndNorm ForwardAfterAdd(Context& ctx, const Tensor& x,
                                  const Tensor& branch) override;

  const Shape normalized_;
  const double eps_;
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
};

class GroupNorm : public Module {
 public:
  struct Options {
    double eps = 1e-5;
    bool affine = true;
    DType dtype = DType::kF32;
  };
  GroupNorm(std::int64_t groups, std::int64_t channels)
      : GroupNorm(groups, channels, Options()) {}
  GroupNorm(std::int64_t groups, std::int64_t channels, const Options& options);

  Tensor Forward(Context& ctx, const Tensor& x) override;

 private:
  const std::int64_t groups_, channels_;
  const double eps_;
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
};

class RMSNorm : public RowNorm {
 public:
  struct Options {
    std::optional<double> eps;  // ops::RmsNorm() has the default
    bool elementwise_affine = true;
    DType dtype = DType::kF32;
  };
  explicit RMSNorm(std::int64_t features) : RMSNorm(features, Options()) {}
  RMSNorm(std::int64_t features, const Options& options);

  Tensor Forward(Context& ctx, const Tensor& x) override;

 private:
  ops::SumAndNorm ForwardAfterAdd(Context& ctx, const Tensor& x,
                                  const Tensor& branch) override;

  const std::int64_t features_;
  const std::optional<double> eps_;
  Parameter* weight_ = nullptr;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_NORM_H_

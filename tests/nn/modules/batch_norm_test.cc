#include "nn/modules/batch_norm.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/ops/add.h"
#include "nn/ops/recompute.h"
#include "nn/ops/relu.h"
#include "tests/nn/modules/one_pass.h"

namespace troupe::nn {
namespace {

using Options = BatchNorm::Options;

std::unique_ptr<BatchNorm1d> Norm1d(std::int64_t channels,
                                    const Options& options = Options()) {
  return std::make_unique<BatchNorm1d>(channels, options);
}

class BatchNormTest : public testing::Test {
 protected:
  Tensor Make(const Shape& shape, const std::vector<double>& values) {
    return MakeTensor(shape, DType::kF32, values, kernels_->allocator());
  }

  std::unique_ptr<Kernels> kernels_ = CreateCpuKernels({});
};

TEST_F(BatchNormTest, HasPyTorchsNames) {
  Sequential model;
  model.Append<Linear>(4, 3);
  model.Append<BatchNorm1d>(3);
  std::string names;
  for (const Parameter* p : model.Parameters()) {
    absl::StrAppend(&names, p->name, " ");
  }
  for (const Buffer* b : model.Buffers()) {
    absl::StrAppend(&names, b->name, b->shape.ToString(), "=", b->initial, " ");
  }
  EXPECT_EQ(names,
            "0.weight 0.bias 1.weight 1.bias 1.running_mean[3]=0 "
            "1.running_var[3]=1 1.num_batches_tracked[]=0 ");
  Options plain;
  plain.affine = plain.track_running_stats = false;
  EXPECT_TRUE(Norm1d(3, plain)->Parameters().empty());
  EXPECT_TRUE(Norm1d(3, plain)->Buffers().empty());
}

// Runs two batches with means 2 and 6, and variances (divided by n - 1) 2 and
// 8.
std::vector<double> RunningAfterTwo(Kernels& kernels, const Options& options) {
  OnePass rank(kernels, Norm1d(1, options));
  const auto column = [&](std::vector<double> values) {
    return MakeTensor({2, 1}, DType::kF32, values, kernels.allocator());
  };
  rank.Run({column({1, 3})}, column({1, 1}));
  const PassValues after = rank.Run({column({4, 8})}, column({1, 1}));
  return {after.buffers.at("running_mean")[0],
          after.buffers.at("running_var")[0],
          after.buffers.at("num_batches_tracked")[0]};
}

TEST_F(BatchNormTest, KeepsRunningStatisticsAsPyTorchDoes) {
  EXPECT_TRUE(
      Near(RunningAfterTwo(*kernels_, {}),
           {0.9 * (0.1 * 2) + 0.1 * 6, 0.9 * (0.9 * 1 + 0.1 * 2) + 0.1 * 8, 2},
           1e-7));
  Options average;
  average.momentum = std::nullopt;
  EXPECT_TRUE(Near(RunningAfterTwo(*kernels_, average), {4, 5, 2}, 1e-7));
}

TEST_F(BatchNormTest, AnEvaluationTakesThemAndChangesNothing) {
  Options plain;
  plain.affine = false;
  plain.eps = 0;
  plain.momentum = 1;
  OnePass rank(*kernels_, Norm1d(1, plain));
  const PassValues trained =
      rank.Run({Make({3, 1}, {1, 5, 3})}, Make({3, 1}, {1, 1, 1}));
  EXPECT_EQ(trained.buffers.at("running_mean"), std::vector<double>{3});
  EXPECT_EQ(trained.buffers.at("running_var"), std::vector<double>{4});
  EXPECT_EQ(rank.Evaluate(Make({1, 1}, {7})), std::vector<double>{2});
  EXPECT_EQ(ValuesOf(rank.module().Buffers()[2]->value),
            std::vector<double>{1});
}

TEST_F(BatchNormTest, WithoutThemAnEvaluationTakesItsBatch) {
  Options plain;
  plain.affine = plain.track_running_stats = false;
  plain.eps = 0;
  OnePass rank(*kernels_, Norm1d(1, plain));
  EXPECT_EQ(rank.Evaluate(Make({2, 1}, {5, 9})), (std::vector<double>{-1, 1}));
}

TEST_F(BatchNormTest, RecomputationUpdatesThemOnce) {
  class Recomputed : public Module {
   public:
    Recomputed() : norm_(Add<BatchNorm1d>("norm", 2)) {}
    Tensor Forward(Context& ctx, const Tensor& x) override {
      return ops::Recompute(
          ctx, [this](Context& c, const Tensor& t) { return norm_(c, t); }, x);
    }
    BatchNorm1d& norm_;
  };
  OnePass again(*kernels_, std::make_unique<Recomputed>());
  class Plain : public Module {
   public:
    Plain() : norm_(Add<BatchNorm1d>("norm", 2)) {}
    Tensor Forward(Context& ctx, const Tensor& x) override {
      return norm_(ctx, x);
    }
    BatchNorm1d& norm_;
  };
  OnePass once(*kernels_, std::make_unique<Plain>());
  const Tensor x = once.Draws("x", {5, 2}), dy = once.Draws("dy", {5, 2});
  const PassValues want = once.Run({x}, dy), got = again.Run({x}, dy);
  EXPECT_EQ(got.buffers, want.buffers);
  EXPECT_EQ(got.gradients, want.gradients);
  EXPECT_EQ(got.dx, want.dx);
  EXPECT_EQ(got.y, want.y);
}

TEST_F(BatchNormTest, ABatchWithoutSamplesChangesNothing) {
  OnePass rank(*kernels_, Norm1d(3));
  const Tensor none = Make({0, 3}, {});
  const PassValues got = rank.Run({none}, none);
  EXPECT_TRUE(got.y.empty());
  EXPECT_EQ(got.buffers.at("running_var"), std::vector<double>(3, 1));
  EXPECT_EQ(got.buffers.at("num_batches_tracked"), std::vector<double>{0});
  EXPECT_EQ(got.gradients.at("weight"), std::vector<double>(3, 0));
}

// The end of a ResNet block, out of three ops.
class Unfused : public Module {
 public:
  explicit Unfused(bool residual)
      : residual_(residual), norm_(Add<BatchNorm2d>("norm", 19)) {
    set_many_tensors();
  }
  TensorList ForwardMany(Context& ctx, absl::Span<const Tensor> xs) override {
    Tensor y = norm_(ctx, xs[0]);
    if (residual_) y = ops::Add(ctx, y, xs[1]);
    return {ops::Relu(ctx, y)};
  }

 private:
  const bool residual_;
  BatchNorm2d& norm_;
};

class Fused : public Module {
 public:
  Fused() : norm_(Add<BatchNorm2d>("norm", 19, Relu())) { set_many_tensors(); }
  TensorList ForwardMany(Context& ctx, absl::Span<const Tensor> xs) override {
    return norm_.CallMany(ctx, xs);
  }

 private:
  static Options Relu() {
    Options options;
    options.relu = true;
    return options;
  }
  BatchNorm2d& norm_;
};

TEST_F(BatchNormTest, FusedWithReluAndResidualHasTheBitsOfTheOps) {
  for (bool residual : {false, true}) {
    for (base::CpuIsa isa : {base::CpuIsa::kPlain, base::BestCpuIsa()}) {
      CpuKernelOptions options;
      options.isa = isa;
      const auto kernels = CreateCpuKernels(options);
      OnePass parts(*kernels, std::make_unique<Unfused>(residual));
      OnePass whole(*kernels, std::make_unique<Fused>());
      TensorList xs = {parts.Draws("x", {3, 5, 4, 19})};
      if (residual) xs.push_back(parts.Draws("shortcut", {3, 5, 4, 19}));
      const Tensor dy = parts.Draws("dy", {3, 5, 4, 19});
      const PassValues want = parts.Run(xs, dy), got = whole.Run(xs, dy);
      EXPECT_EQ(got.y, want.y);
      EXPECT_EQ(got.dx, want.dx);
      EXPECT_EQ(got.gradients, want.gradients);
      EXPECT_EQ(got.buffers, want.buffers);
    }
  }
}

// The variance is computed in two passes: sums of squares would leave 8 digits
// with a mean of 10^4 standard deviations, and none with 10^8.
TEST_F(BatchNormTest, TheVarianceOfF64KeepsItsDigits) {
  BatchNorm::Options options;
  options.dtype = DType::kF64;
  options.momentum = std::nullopt;
  const auto oracle = CreateReferenceKernels();
  for (const double mean : {0.0, 1e4, -1e6, 1e8}) {
    std::vector<double> values = NormalDraws("far", 37);
    long double sum = 0, squares = 0;
    for (double& value : values) sum += value += mean;
    for (const double value : values) {
      squares += (value - sum / 37) * (value - sum / 37);
    }
    OnePass rank(*oracle, Norm1d(1, options), DType::kF64);
    const Tensor x =
        MakeTensor({37, 1}, DType::kF64, values, oracle->allocator());
    const PassValues got = rank.Run({x}, x);
    EXPECT_TRUE(Near(got.buffers.at("running_var"),
                     {static_cast<double>(squares / 36)}, 1e-14))
        << mean;
    EXPECT_TRUE(Near(got.buffers.at("running_mean"),
                     {static_cast<double>(sum / 37)}, 1e-15))
        << mean;
  }
}

// Sums of squares must not lose the variance of f32 numbers far from 0.
TEST_F(BatchNormTest, TheVarianceSurvivesALargeMean) {
  const std::int64_t N = 1000;
  std::vector<double> values = NormalDraws("far", N);
  for (double& value : values) value = 10000 + value;
  const Tensor x = Make({N, 1}, values), dy = Make({N, 1}, values);
  const auto oracle = CreateReferenceKernels();
  OnePass exact(*oracle, Norm1d(1)), rank(*kernels_, Norm1d(1));
  EXPECT_TRUE(Near(rank.Run({x}, dy).y, exact.Run({x}, dy).y, 1e-3));
  EXPECT_TRUE(Near(rank.Run({x}, dy).buffers.at("running_var"),
                   exact.Run({x}, dy).buffers.at("running_var"), 1e-6));
}

TEST_F(BatchNormTest, ErrorsNameTheModuleAndTheShapes) {
  const auto message = [&](Module& model, const Shape& shape) {
    Context ctx(*kernels_);
    EXPECT_TRUE(BindBuffers(model.Buffers(), *kernels_).ok());
    model(ctx, Tensor::Zeros(shape, DType::kF32, kernels_->allocator()));
    return std::string(ctx.status().message());
  };
  Options plain;
  plain.affine = false;
  Sequential model;
  model.Append<BatchNorm1d>(3, plain);
  EXPECT_EQ(
      message(model, {2, 4}),
      "in module 0: batch norm of 3 channels takes x[N, C] or [N, L, C], got "
      "[2, 4]");
  EXPECT_EQ(
      message(model, {2, 2, 2, 3}),
      "in module 0: batch norm of 3 channels takes x[N, C] or [N, L, C], got "
      "[2, 2, 2, 3]");
  EXPECT_EQ(
      message(model, {1, 3}),
      "in module 0: Expected more than 1 value per channel when training, got "
      "input size f32[1, 3]; make micro-batches larger");
}

TEST_F(BatchNormTest, AShapeOnlyForwardTakesOneSample) {
  BatchNorm1d norm(3);
  ShapeRecord record;
  EXPECT_TRUE(
      ShapeOnlyForward(norm, {1, 3}, DType::kF32, Device{}, record).ok());
  EXPECT_EQ(record.buffers.size(), 3u);
  EXPECT_TRUE(record.axes.empty());
}

}  // namespace
}  // namespace troupe::nn

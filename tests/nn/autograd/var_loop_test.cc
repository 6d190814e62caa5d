// A training loop by hand in plain C++: its losses are those of the same loop
// in PyTorch (tools/golden/make_loop.py).

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/guards.h"
#include "nn/autograd/var_math.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/linear.h"
#include "nn/modules/net.h"
#include "nn/optim/sgd.h"
#include "tests/golden/golden_file.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

class Gated : public Net {
 public:
  explicit Gated(DType dtype) : dtype_(dtype) {}

  Var Forward(Var x) override {
    Var h = fc1_(x);
    h = h.Slice(0, 6, 1).Tanh() * h.Slice(6, 12, 1).Sigmoid() * x.Use(gain);
    h = h * Rsqrt(Mean(Pow(h, 2), {-1}, /*keep_dims=*/true) + 1e-3);
    return fc2_(h);
  }

 private:
  const DType dtype_;
  Linear& fc1_ = Add<Linear>("fc1", 8, 12, Options());
  Linear& fc2_ = Add<Linear>("fc2", 6, 4, Options());

  Linear::Options Options() const {
    Linear::Options options;
    options.dtype = dtype_;
    return options;
  }

 public:
  Parameter& gain = Declare("gain", {6}, Initializer::Constant(1), dtype_);
};

void RunLoop(Kernels& kernels, DType dtype, double tolerance) {
  const GoldenFile golden =
      *GoldenFile::Open(absl::StrCat("loop_", DTypeName(dtype)));
  const auto input = [&](const std::string& name, const Shape& shape,
                         double scale) {
    return MakeTensor(shape, dtype,
                      GoldenInput("loop/" + name, shape.numel(), scale),
                      kernels.allocator());
  };
  Gated model(dtype);
  const auto arena =
      *ParameterArena::Create({model.Parameters()}, {}, kernels.allocator());
  for (Parameter* p : model.Parameters()) {
    const Tensor filled = input(p->name, p->shape, 0.5);
    std::memcpy(p->value.raw(), filled.raw(), filled.bytes());
  }
  SgdOptions options;
  options.lr = 0.25;
  options.momentum = 0.5;
  Sgd sgd(options);
  ASSERT_TRUE(sgd.Attach(*arena).ok());

  Tape tape;
  Context ctx(kernels, &tape);
  const Var x(ctx, input("x", {12, 8}, 1));
  const Tensor y = MakeTensor(
      {12}, DType::kI64, GoldenLabels("loop/y", 12, 4, /*ignore_fifth=*/true),
      kernels.allocator());
  std::vector<double> losses, largest;
  for (int step = 0; step < golden.spec()["steps"]; ++step) {
    ctx.BeginStep();
    arena->BeginStep();
    Var loss = CrossEntropy(model(x), y);
    loss = loss + 0.125 * Mean(Abs(x.Use(model.gain) - 1));
    loss.Backward();
    StepScalars scalars;
    sgd.FillScalars(step, scalars);
    scalars.summed = 1;  // gradients are those of the mean: not divided again
    ASSERT_TRUE(sgd.Update(kernels, HostScalars(scalars, kernels.allocator()),
                           *arena,
                           /*bucket=*/0)
                    .ok());
    losses.push_back(loss.item());
    const NoGrad no_grad(ctx);
    largest.push_back(Amax(model(x)).item());
  }
  EXPECT_TRUE(Near(losses, golden.Values("losses"), tolerance));
  EXPECT_TRUE(Near(largest, golden.Values("largest"), tolerance));
}

TEST(VarLoopTest, HasTheLossesOfPyTorchInF64) {
  RunLoop(*CreateReferenceKernels(), DType::kF64, 1e-13);
}

TEST(VarLoopTest, HasTheLossesOfPyTorchOnTheCpu) {
  for (const base::CpuIsa isa :
       {base::CpuIsa::kPlain, base::CpuIsa::kAvx2, base::CpuIsa::kAvx512}) {
    if (isa > base::BestCpuIsa()) continue;
    CpuKernelOptions options;
    options.isa = isa;
    RunLoop(*CreateCpuKernels(options), DType::kF32, 2e-6);
  }
}

}  // namespace
}  // namespace troupe::nn

#include "nn/modules/norm.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/linear.h"
#include "nn/ops/add.h"
#include "tests/nn/modules/one_pass.h"

namespace troupe::nn {
namespace {

constexpr std::int64_t kFeatures = 24;

// How a block computes the norm after its branch.
enum class Way { kTwoOps, kAfterAdd, kAfterAddAgain };

// A transformer block: two branches, each behind a norm.
template <typename Norm>
class Block : public Module {
 public:
  Block(DType dtype, Way way)
      : way_(way),
        norm1_(Add<Norm>("norm1", kFeatures, Options(dtype))),
        branch1_(Add<Linear>("branch1", kFeatures, kFeatures, Of(dtype))),
        norm2_(Add<Norm>("norm2", kFeatures, Options(dtype))),
        branch2_(Add<Linear>("branch2", kFeatures, kFeatures, Of(dtype))) {
    norm2_.set_recomputes(way == Way::kAfterAddAgain);
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    const Tensor branch = branch1_(ctx, norm1_(ctx, x));
    const auto [sum, normed] = Second(ctx, x, branch);
    return ops::Add(ctx, sum, branch2_(ctx, normed));
  }

 private:
  static typename Norm::Options Options(DType dtype) {
    typename Norm::Options options;
    options.dtype = dtype;
    return options;
  }
  static Linear::Options Of(DType dtype) {
    Linear::Options options;
    options.dtype = dtype;
    return options;
  }
  ops::SumAndNorm Second(Context& ctx, const Tensor& x, const Tensor& branch) {
    if (way_ != Way::kTwoOps) return norm2_.AfterAdd(ctx, x, branch);
    const Tensor sum = ops::Add(ctx, x, branch);
    return {sum, norm2_(ctx, sum)};
  }

  const Way way_;
  Norm& norm1_;
  Linear& branch1_;
  Norm& norm2_;
  Linear& branch2_;
};

template <typename Norm>
PassValues RunBlock(Kernels& kernels, DType dtype, Way way) {
  OnePass rank(kernels, std::make_unique<Block<Norm>>(dtype, way), dtype);
  const Shape shape = {3, 5, kFeatures};
  return rank.Run({rank.Draws("x", shape)}, rank.Draws("dy", shape));
}

template <typename Norm>
void ExpectTheBitsOfTwoOps(Kernels& kernels, DType dtype) {
  const PassValues want = RunBlock<Norm>(kernels, dtype, Way::kTwoOps);
  for (const Way way : {Way::kAfterAdd, Way::kAfterAddAgain}) {
    const PassValues got = RunBlock<Norm>(kernels, dtype, way);
    EXPECT_EQ(got.y, want.y);
    EXPECT_EQ(got.dx, want.dx);
    EXPECT_EQ(got.gradients, want.gradients);
  }
}

TEST(NormTest, AfterAddHasTheBitsOfTwoOps) {
  const auto cpu = CreateCpuKernels({});
  const auto reference = CreateReferenceKernels();
  for (Kernels* kernels : {cpu.get(), reference.get()}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      SCOPED_TRACE(absl::StrCat(kernels->Describe(), ", ", DTypeName(dtype)));
      ExpectTheBitsOfTwoOps<LayerNorm>(*kernels, dtype);
      ExpectTheBitsOfTwoOps<RMSNorm>(*kernels, dtype);
    }
  }
}

// In a block's backward, the gradient of a norm is added to that of the
// residual connection around it in one pass.
TEST(NormTest, NobodyAddsGradientsOfANormByThemselves) {
  const auto kernels = CreateReferenceKernels();
  static int additions;
  additions = 0;
  kernels->Add.BindFunction(
      [](const auto&, In a, In b, Out y) {
        ++additions;
        for (std::int64_t i = 0; i < a.numel(); ++i) {
          y.tensor.data<float>()[i] = a.data<float>()[i] + b.data<float>()[i];
        }
        return absl::OkStatus();
      },
      nullptr);
  RunBlock<LayerNorm>(*kernels, DType::kF32, Way::kAfterAdd);
  EXPECT_EQ(additions, 1) << "that at the block's end, in the forward";
}

TEST(NormTest, SaysWhichNormDoesNotFit) {
  const auto kernels = CreateReferenceKernels();
  const auto error = [&](auto make) {
    const std::unique_ptr<Module> norm = make();
    Context ctx(*kernels);
    const Tensor x = Tensor::Zeros({2, 3}, DType::kF32, kernels->allocator());
    norm->CallMany(ctx, {x, x});
    return std::string(ctx.status().message());
  };
  const auto rms = [] {
    RMSNorm::Options options;
    options.elementwise_affine = false;
    return std::make_unique<RMSNorm>(4, options);
  };
  EXPECT_THAT(error(rms), testing::HasSubstr(
                              "RMSNorm of 4 features takes x[..., 4], got "));
}

}  // namespace
}  // namespace troupe::nn

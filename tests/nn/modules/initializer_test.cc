// Parameters have PyTorch's initial values: weight and bias of Linear and
// Conv2d are from U(-1 / sqrt(fan_in), 1 / sqrt(fan_in)).

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/modules/conv1d.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/conv_transpose2d.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

class InitializerTest : public testing::Test {
 protected:
  // Initialises `module` alone and returns its parameters.
  std::vector<Parameter*> Initialized(Module& module, std::uint64_t seed) {
    std::vector<Parameter*> parameters = module.Parameters();
    arena_ = *ParameterArena::Create({parameters}, {}, allocator_);
    EXPECT_TRUE(arena_->Initialize(seed).ok());
    return parameters;
  }

  // Expects bounds, mean, variance and fourth moment of U(-bound, bound),
  // within five standard deviations for the number of draws.
  void ExpectUniform(const Tensor& tensor, double bound) {
    const std::vector<double> values = ValuesOf(tensor);
    const double n = static_cast<double>(values.size());
    double m1 = 0, m2 = 0, m4 = 0, largest = 0;
    for (double value : values) {
      const double u = value / bound;
      m1 += u / n;
      m2 += u * u / n;
      m4 += u * u * u * u / n;
      largest = std::max(largest, std::fabs(u));
    }
    EXPECT_LE(largest, 1 + 1e-6);
    EXPECT_GT(largest, 1 - 20 / n);
    EXPECT_NEAR(m1, 0, 5 * std::sqrt(1.0 / 3 / n));
    EXPECT_NEAR(m2, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / n));
    EXPECT_NEAR(m4, 1.0 / 5, 5 * std::sqrt((1.0 / 9 - 1.0 / 25) / n));
  }

  CachingAllocator allocator_;
  std::unique_ptr<ParameterArena> arena_;
};

TEST_F(InitializerTest, Linear) {
  Linear linear(300, 200);
  const auto parameters = Initialized(linear, 1);
  ASSERT_EQ(parameters[0]->value.shape(), (Shape{200, 300}));
  ASSERT_EQ(parameters[1]->value.shape(), (Shape{200}));
  ExpectUniform(parameters[0]->value, 1 / std::sqrt(300.0));
  ExpectUniform(parameters[1]->value, 1 / std::sqrt(300.0));
}

TEST_F(InitializerTest, Conv2d) {
  Conv2d conv(20, 150, Window2d{3, 5});
  const auto parameters = Initialized(conv, 1);
  ASSERT_EQ(parameters[0]->value.shape(), (Shape{150, 20, 3, 5}));
  ExpectUniform(parameters[0]->value, 1 / std::sqrt(20.0 * 3 * 5));
  ExpectUniform(parameters[1]->value, 1 / std::sqrt(20.0 * 3 * 5));
}

TEST_F(InitializerTest, EveryDTypeHasTheSameDrawsRounded) {
  std::vector<double> wide;
  for (DType dtype : {DType::kF64, DType::kF32, DType::kBF16, DType::kF16}) {
    Linear::Options options;
    options.dtype = dtype;
    Linear linear(40, 30, options);
    const std::vector<double> values =
        ValuesOf(Initialized(linear, 5)[0]->value);
    if (dtype == DType::kF64) wide = values;
    EXPECT_TRUE(Near(values, wide, 0x1p-8)) << DTypeName(dtype);
  }
}

// Values depend only on the seed and the name, not on order, layout or rank.
TEST_F(InitializerTest, IsKeyedBySeedAndName) {
  auto values_of = [&](std::uint64_t seed, const std::vector<int>& order,
                       std::int64_t pad_elems) {
    Sequential model;
    model.Append<Linear>(5, 7);
    model.Append<Linear>(7, 3);
    std::vector<Parameter*> all = model.Parameters();
    std::vector<std::vector<Parameter*>> buckets;
    for (int i : order) buckets.push_back({all[i]});
    auto arena = *ParameterArena::Create(buckets, {pad_elems}, allocator_);
    EXPECT_TRUE(arena->Initialize(seed).ok());
    std::vector<double> values;
    for (Parameter* p : all) {
      for (double value : ValuesOf(p->value)) values.push_back(value);
    }
    return values;
  };
  const auto values = values_of(1, {0, 1, 2, 3}, 16);
  EXPECT_EQ(values_of(1, {3, 1, 2, 0}, 64), values);
  EXPECT_NE(values_of(2, {0, 1, 2, 3}, 16), values);
}

TEST_F(InitializerTest, ConstantAndNormal) {
  class Custom : public Module {
   public:
    Custom() {
      Declare("ones", {5}, Initializer::Constant(1));
      Declare("noise", {20'000}, Initializer::Normal(2, 0.5));
    }
    Tensor Forward(Context&, const Tensor& x) override { return x; }
  } custom;
  const auto parameters = Initialized(custom, 1);
  EXPECT_EQ(ValuesOf(parameters[0]->value), std::vector<double>(5, 1.0));
  double sum = 0, squares = 0;
  for (double value : ValuesOf(parameters[1]->value)) {
    sum += value;
    squares += (value - 2) * (value - 2);
  }
  EXPECT_NEAR(sum / 20'000, 2, 5 * 0.5 / std::sqrt(20'000));
  EXPECT_NEAR(squares / 20'000, 0.25, 5 * 0.25 * std::sqrt(2.0 / 20'000));
}

TEST_F(InitializerTest, TruncatedNormal) {
  class Custom : public Module {
   public:
    Custom() {
      Declare("one", {20'000}, Initializer::TruncatedNormal(0, 1));
      Declare("far", {50}, Initializer::TruncatedNormal(0, 1, 30, 31));
    }
    Tensor Forward(Context&, const Tensor& x) override { return x; }
  } custom;
  const auto parameters = Initialized(custom, 1);
  double sum = 0, squares = 0, largest = 0;
  for (double value : ValuesOf(parameters[0]->value)) {
    sum += value;
    squares += value * value;
    largest = std::max(largest, std::fabs(value));
  }
  EXPECT_LE(largest, 2);
  EXPECT_GT(largest, 1.98);
  // The variance of a normal truncated to [-2, 2] is 0.7737.
  EXPECT_NEAR(sum / 20'000, 0, 5 * std::sqrt(0.7737 / 20'000));
  EXPECT_NEAR(squares / 20'000, 0.7737, 0.03);
  EXPECT_EQ(ValuesOf(parameters[1]->value), std::vector<double>(50, 30));
}

TEST(Initializer, FansAreThoseOfPyTorch) {
  const Shape conv = {64, 3, 7, 5}, linear = {20, 30};
  EXPECT_EQ(FanOf(conv, Fan::kIn), 3 * 7 * 5);
  EXPECT_EQ(FanOf(conv, Fan::kOut), 64 * 7 * 5);
  EXPECT_EQ(FanOf(linear, Fan::kIn), 30);
  EXPECT_EQ(FanOf(linear, Fan::kOut), 20);
  EXPECT_EQ(FanOf({9}, Fan::kIn), 1);
}

// The spreads of kaiming_normal_(mode="fan_out", nonlinearity="relu"),
// kaiming_uniform_(a=sqrt(5)), xavier_normal_ and xavier_uniform_.
TEST(Initializer, SpreadsAreThoseOfPyTorch) {
  const Shape w = {64, 3, 7, 7};
  const Initializer kaiming = Initializer::KaimingNormal(w, Fan::kOut);
  EXPECT_EQ(kaiming.kind, Initializer::Kind::kNormal);
  EXPECT_EQ(kaiming.a, 0);
  EXPECT_NEAR(kaiming.b, std::sqrt(2.0 / (64 * 49)), 1e-15);
  const Initializer leaky =
      Initializer::KaimingUniform(w, Fan::kIn, LeakyReluGain(std::sqrt(5.0)));
  EXPECT_EQ(leaky.kind, Initializer::Kind::kUniform);
  EXPECT_NEAR(leaky.b, 1 / std::sqrt(3.0 * 49), 1e-15);
  EXPECT_EQ(leaky.a, -leaky.b);
  EXPECT_NEAR(Initializer::XavierNormal(w).b, std::sqrt(2.0 / (67 * 49)),
              1e-15);
  EXPECT_NEAR(Initializer::XavierUniform(w, kTanhGain).b,
              5.0 / 3 * std::sqrt(6.0 / (67 * 49)), 1e-15);
}

TEST_F(InitializerTest, ConvolutionsInGroups) {
  Conv2d::Options options;
  options.groups = 4;
  Conv2d conv(40, 80, Window2d{3, 5}, options);
  Conv1d signal(30, 200, Window1d{5});
  ConvTranspose2d up(30, 40, Window2d{3, 2});
  const auto of_conv = Initialized(conv, 1);
  ASSERT_EQ(of_conv[0]->value.shape(), (Shape{80, 10, 3, 5}));
  ExpectUniform(of_conv[0]->value, 1 / std::sqrt(10.0 * 3 * 5));
  const auto of_signal = Initialized(signal, 1);
  ASSERT_EQ(of_signal[0]->value.shape(), (Shape{200, 30, 5}));
  ExpectUniform(of_signal[0]->value, 1 / std::sqrt(30.0 * 5));
  const auto of_up = Initialized(up, 1);
  ASSERT_EQ(of_up[0]->value.shape(), (Shape{30, 40, 3, 2}));
  ASSERT_EQ(of_up[1]->value.shape(), (Shape{40}));
  ExpectUniform(of_up[0]->value, 1 / std::sqrt(40.0 * 3 * 2));
}

// These values may never change: runs are compared by them.
TEST_F(InitializerTest, Golden) {
  Sequential model;
  model.Append<Linear>(4, 2);
  const std::vector<double> weight = ValuesOf(Initialized(model, 1)[0]->value);
  const std::vector<double> want = {-0.197711349, 0.090755403, -0.443909585,
                                    0.0753275156, 0.49175024,  -0.269067347,
                                    0.0216494799, 0.15479213};
  ASSERT_EQ(weight.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(static_cast<float>(weight[i]), static_cast<float>(want[i]));
  }
}

}  // namespace
}  // namespace troupe::nn

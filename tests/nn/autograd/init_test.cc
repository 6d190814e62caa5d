#include "nn/autograd/init.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/status_error.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/linear.h"
#include "nn/modules/net.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

using Kind = Initializer::Kind;

void ExpectInit(const Parameter& p, Kind kind, double a, double b) {
  EXPECT_EQ(p.init.kind, kind);
  EXPECT_NEAR(p.init.a, a, 1e-15);
  EXPECT_NEAR(p.init.b, b, 1e-15);
}

// Bounds and deviations that PyTorch 2's torch.nn.init computes for these
// shapes: fan_in 8, fan_out 5 of the linear layer, 27 and 144 of the other.
TEST(InitTest, HasTheNumbersOfPyTorch) {
  Linear fc(8, 5);
  Conv2d conv(3, 16, 3);
  init::KaimingUniform(fc.weight());
  ExpectInit(fc.weight(), Kind::kUniform, -std::sqrt(6. / 8),
             std::sqrt(6. / 8));
  init::KaimingUniform(fc.weight(), std::sqrt(5.));
  ExpectInit(fc.weight(), Kind::kUniform, -1 / std::sqrt(8.),
             1 / std::sqrt(8.));
  init::KaimingNormal(fc.weight(), 0.2);
  ExpectInit(fc.weight(), Kind::kNormal, 0, std::sqrt(2 / 1.04 / 8));
  init::KaimingNormal(conv.weight(), 0, Fan::kOut, init::Nonlinearity::kRelu);
  ExpectInit(conv.weight(), Kind::kNormal, 0, std::sqrt(2. / 144));
  init::XavierUniform(conv.weight(), init::Gain(init::Nonlinearity::kTanh));
  ExpectInit(conv.weight(), Kind::kUniform, -5. / 3 * std::sqrt(6. / 171),
             5. / 3 * std::sqrt(6. / 171));
  init::XavierNormal(fc.weight());
  ExpectInit(fc.weight(), Kind::kNormal, 0, std::sqrt(2. / 13));
  init::TruncNormal(fc.weight(), 0, 0.02);
  ExpectInit(fc.weight(), Kind::kTruncatedNormal, 0, 0.02);
  EXPECT_EQ(fc.weight().init.low, -2);
  EXPECT_EQ(fc.weight().init.high, 2);
  init::Normal(fc.bias());
  ExpectInit(fc.bias(), Kind::kNormal, 0, 1);
  init::Uniform(fc.bias());
  ExpectInit(fc.bias(), Kind::kUniform, 0, 1);
  init::Constant(fc.bias(), 0.3);
  ExpectInit(fc.bias(), Kind::kConstant, 0.3, 0);
}

TEST(InitTest, GainsAreThoseOfPyTorch) {
  using init::Gain;
  using init::Nonlinearity;
  EXPECT_EQ(Gain(Nonlinearity::kLinear), 1);
  EXPECT_EQ(Gain(Nonlinearity::kSigmoid), 1);
  EXPECT_EQ(Gain(Nonlinearity::kTanh), 5. / 3);
  EXPECT_EQ(Gain(Nonlinearity::kRelu), std::sqrt(2.));
  EXPECT_EQ(Gain(Nonlinearity::kLeakyRelu), std::sqrt(2 / 1.0001));
  EXPECT_EQ(Gain(Nonlinearity::kSelu), 0.75);
}

class Filled : public Net {
 public:
  Filled() {
    init::Uniform(fc_.weight(), 2, 3);
    init::Ones(fc_.bias());
    init::Zeros(conv_.bias());
  }
  Var Forward(Var x) override { return fc_(x); }

 private:
  Linear& fc_ = Add<Linear>("fc", 50, 20);
  Conv2d& conv_ = Add<Conv2d>("conv", 3, 4, 1);
};

TEST(InitTest, TheArenaFillsAsTheConstructorSaid) {
  const std::unique_ptr<Kernels> kernels = CreateReferenceKernels();
  Filled net;
  const std::vector<Parameter*> parameters = net.Parameters();
  const auto arena =
      *ParameterArena::Create({parameters}, {}, kernels->allocator());
  ASSERT_TRUE(arena->Initialize(/*seed=*/1).ok());
  double sum = 0;
  for (const double value : ValuesOf(parameters[0]->value)) {
    EXPECT_GE(value, 2);
    EXPECT_LT(value, 3);
    sum += value;
  }
  EXPECT_NEAR(sum / 1000, 2.5, 0.05);
  EXPECT_EQ(ValuesOf(parameters[1]->value), std::vector<double>(20, 1.0));
  EXPECT_EQ(ValuesOf(parameters[3]->value), std::vector<double>(4, 0.0));

  // Parameters with memory are not filled again.
  const absl::Status late =
      base::Try([&] { init::XavierNormal(*parameters[0]); });
  EXPECT_EQ(late.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(late.message(),
            "init::XavierNormal: fc.weight [20, 50] has memory already; call "
            "it in the module's constructor");
}

TEST(InitTest, RefusesWhatHasNoMeaning) {
  Linear fc(8, 5);
  const auto error = [](auto run) {
    return std::string(base::Try(run).message());
  };
  EXPECT_EQ(error([&] { init::KaimingNormal(fc.bias()); }),
            "init::KaimingNormal: bias [5]: a fan needs at least two axes; "
            "choose Uniform or Normal");
  EXPECT_EQ(error([&] { init::Normal(fc.bias(), 0, -1); }),
            "init::Normal: bias [5]: a standard deviation is at least 0, got "
            "-1");
  EXPECT_EQ(error([&] { init::Uniform(fc.bias(), 1, 0); }),
            "init::Uniform: bias [5]: limits are ascending, got 1 and 0");
  Linear::Options no_bias;
  no_bias.bias = false;
  Linear plain(8, 5, no_bias);
  EXPECT_EQ(error([&] { init::Zeros(plain.bias()); }),
            "a module has no parameter \"bias\" of its own; it has weight");
}

}  // namespace
}  // namespace troupe::nn

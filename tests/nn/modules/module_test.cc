#include "nn/modules/module.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/models/models.h"
#include "nn/modules/lambda.h"
#include "nn/modules/linear.h"
#include "nn/modules/pool2d.h"
#include "nn/modules/sequential.h"
#include "nn/ops/add.h"
#include "nn/ops/flatten.h"
#include "nn/ops/loss.h"
#include "nn/ops/reduce.h"
#include "nn/ops/relu.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

std::string Names(const std::vector<Parameter*>& parameters) {
  return absl::StrJoin(parameters, " ", [](std::string* out, Parameter* p) {
    out->append(p->name + p->shape.ToString());
  });
}

std::string Names(Module& module) { return Names(module.Parameters()); }

// A module as a user writes it: parameters of its own and a child.
class Residual : public Module {
 public:
  explicit Residual(std::int64_t n)
      : gain_(Declare("gain", {n, n}, Initializer::Normal(0, 0.5))),
        linear_(Add<Linear>("linear", n, n)) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    Tensor y = ops::Relu(ctx, linear_(ctx, x));
    return ops::Add(ctx, x, ops::Add(ctx, y, Gain(ctx, x)));
  }

 private:
  Tensor Gain(Context& ctx, const Tensor& x) {
    // A parameter as an ordinary input of an op.
    return ops::Add(ctx, x, ctx.Use(gain_));
  }

  Parameter& gain_;
  Linear& linear_;
};

struct NoSink : GradientSink {
  void GradientComplete(Parameter&) override {}
  void LastReaderDone(Parameter&) override {}
};

TEST(Module, NamesParametersAsPyTorchDoes) {
  EXPECT_EQ(Names(*MakeMlp({784, 512, 10}, {})),
            "1.weight[512, 784] 1.bias[512] 3.weight[10, 512] 3.bias[10]");
  EXPECT_EQ(Names(**MakeLeNet({28, 28, 1}, 10, {})),
            "0.weight[6, 1, 5, 5] 0.bias[6] 3.weight[16, 6, 5, 5] 3.bias[16] "
            "7.weight[120, 256] 7.bias[120] 9.weight[84, 120] 9.bias[84] "
            "11.weight[10, 84] 11.bias[10]");
  Sequential model;
  model.Append<Residual>(3);
  EXPECT_EQ(Names(model),
            "0.gain[3, 3] 0.linear.weight[3, 3] 0.linear.bias[3]");
}

TEST(Module, WithoutBiasThereIsNone) {
  ModelOptions options;
  options.bias = false;
  EXPECT_EQ(Names(*MakeMlp({4, 3}, options)), "1.weight[3, 4]");
}

// Against finite differences: every parameter of a user's module is trained.
TEST(Module, AUsersModuleTrains) {
  auto kernels = CreateReferenceKernels();
  Allocator& memory = kernels->allocator();
  Residual block(3);
  std::vector<Parameter*> parameters = block.Parameters();
  auto arena = *ParameterArena::Create({parameters}, {}, memory);
  EXPECT_TRUE(arena->Initialize(4).ok());
  const Tensor x = MakeTensor({3, 3}, DType::kF32, NormalDraws("x", 9), memory);
  const Tensor target = Tensor::Zeros({3, 3}, DType::kF32, memory);
  auto loss_of = [&](Context& ctx) {
    Tensor loss = ops::MeanSquaredError(ctx, block(ctx, x), target);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    return loss;
  };
  NoSink sink;
  Tape tape;
  Context ctx(*kernels, &tape);
  const Tensor loss = loss_of(ctx);
  BackwardPass pass(tape, *kernels, sink, BackwardPass::Mode::kWhole);
  pass.Seed(loss);
  while (*pass.Next()) {
  }
  for (Parameter* p : parameters) {
    ASSERT_TRUE(p->grad_written) << p->name;
    float& element = p->value.data<float>()[1];
    const float before = element;
    double difference = 0;
    for (float sign : {1.0f, -1.0f}) {
      element = before + sign * 0x1p-7f;
      Context plain(*kernels);
      difference += sign * loss_of(plain).data<double>()[ops::kLossSum];
    }
    element = before;
    const double slope = difference / 0x1p-6;
    EXPECT_NEAR(p->grad.data<float>()[1], slope, 1e-3 * std::fabs(slope) + 1e-3)
        << p->name;
  }
}

// A micro-batch may be empty: its gradients are zeros of the right shapes.
TEST(Module, AnEmptyBatchGoesThroughAWholeModel) {
  auto kernels = CreateReferenceKernels();
  auto model = *MakeLeNet({28, 28, 1}, 10, {});
  const std::vector<Parameter*> parameters = model->Parameters();
  auto arena = *ParameterArena::Create({parameters}, {}, kernels->allocator());
  EXPECT_TRUE(arena->Initialize(1).ok());
  for (float& g : arena->grads().span<float>()) g = 7;
  Tape tape;
  Context ctx(*kernels, &tape);
  Tensor x = Tensor::Zeros({0, 28, 28, 1}, DType::kF32, kernels->allocator());
  EXPECT_EQ(ops::Flatten(ctx, x).shape(), (Shape{0, 784}));
  Tensor y = (*model)(ctx, x);
  ASSERT_TRUE(ctx.ok()) << ctx.status();
  ASSERT_EQ(y.shape(), (Shape{0, 10}));
  NoSink sink;
  BackwardPass pass(tape, *kernels, sink, BackwardPass::Mode::kWhole);
  pass.Seed(y, y.Detached());
  while (*pass.Next()) {
  }
  for (Parameter* p : parameters) {
    EXPECT_EQ(ValuesOf(p->grad), std::vector<double>(p->shape.numel(), 0.0))
        << p->name;
  }
}

TEST(Sequential, CutKeepsNamesAndOrder) {
  auto parts = Sequential::Cut(*MakeLeNet({28, 28, 1}, 10, {}), {{3}, {7}});
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 3u);
  EXPECT_EQ((*parts)[0]->size(), 3);
  EXPECT_EQ((*parts)[2]->size(), 5);
  EXPECT_EQ(Names(*(*parts)[1]), "3.weight[16, 6, 5, 5] 3.bias[16]");
  EXPECT_EQ(Names(*(*parts)[2]),
            "7.weight[120, 256] 7.bias[120] 9.weight[84, 120] 9.bias[84] "
            "11.weight[10, 84] 11.bias[10]");
}

TEST(Sequential, APartOfACutGrowsBehindItsLastChild) {
  auto parts = *Sequential::Cut(MakeMlp({4, 3, 3, 2}, {}), {{1}, {3}});
  parts[1]->Append<Linear>(3, 3);  // after "1" and "2"
  parts[2]->Append<Linear>(2, 2);  // after "3", "4" and "5"
  EXPECT_EQ(Names(*parts[1]),
            "1.weight[3, 4] 1.bias[3] 3.weight[3, 3] "
            "3.bias[3]");
  EXPECT_EQ(Names(*parts[2]),
            "3.weight[3, 3] 3.bias[3] 5.weight[2, 3] 5.bias[2] "
            "6.weight[2, 2] 6.bias[2]");
}

// Two tensors of one name would be one tensor in a checkpoint.
class Twice : public Module {
 public:
  Twice(const std::string& first, const std::string& second, bool child) {
    Declare(first, {2}, Initializer::Constant(0));
    if (child) {
      Add<Linear>(second, 2, 2);
    } else {
      Declare(second, {2}, Initializer::Constant(0));
    }
  }
  Tensor Forward(Context&, const Tensor& x) override { return x; }
};

TEST(Module, ANameIsTakenOnce) {
  EXPECT_EQ(Names(*std::make_unique<Twice>("a", "b", false)), "a[2] b[2]");
  EXPECT_TRUE(Twice("a", "b", true).CheckDeclarations().ok());
  for (bool child : {false, true}) {
    EXPECT_EQ(
        Twice("gain", "gain", child).CheckDeclarations(),
        absl::InvalidArgumentError("the model has two parameters, buffers "
                                   "or children named \"gain\"; rename one"));
  }
  Sequential model;
  model.Append<Linear>(2, 2);
  model.Append<Twice>("gain", "gain", false);
  ShapeRecord record;
  EXPECT_EQ(
      ShapeOnlyForward(model, {1, 2}, DType::kF32, Device{}, record).status(),
      absl::InvalidArgumentError("module 1 has two parameters, buffers or "
                                 "children named \"gain\"; rename one"));
}

TEST(Sequential, CutRefusesWhatIsNotInside) {
  using Paths = std::vector<Sequential::Path>;
  for (const Paths& cuts : std::vector<Paths>{{{}},
                                              {{0}},
                                              {{0, 0}},
                                              {{4}},
                                              {{-1}},
                                              {{2}, {2}},
                                              {{3}, {1}},
                                              {{0, 4}},
                                              {{0, 1, 1}},
                                              {{0, 2}, {0, 1}},
                                              {{0, 2}, {0, 2}},
                                              {{1}, {0, 1}}}) {
    auto whole = std::make_unique<Sequential>();
    auto& inner = whole->Append<Sequential>();
    for (int i = 0; i < 4; ++i) inner.Append<Linear>(2, 2);
    for (int i = 0; i < 3; ++i) whole->Append<Linear>(2, 2);
    EXPECT_EQ(Sequential::Cut(std::move(whole), cuts).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(
      Sequential::Cut(MakeMlp({4, 3, 2}, {}), {{2}, {1, 1}}).status().message(),
      "cut 1.1 is not inside the model: cuts must ascend, and each stand "
      "behind "
      "a child of a Sequential");
}

TEST(Sequential, IsCutInsideOneThatItHolds) {
  auto whole = std::make_unique<Sequential>();
  whole->Append<Linear>(2, 3);
  auto& outer = whole->Append<Sequential>();
  outer.Append<Linear>(3, 4);
  auto& inner = outer.Append<Sequential>();
  inner.Append<Linear>(4, 5);
  inner.Append<Linear>(5, 6);
  outer.Append<Linear>(6, 7);
  auto parts = Sequential::Cut(std::move(whole), {{1, 1, 1}, {1, 2}});
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(Names(*(*parts)[0]),
            "0.weight[3, 2] 0.bias[3] 1.0.weight[4, 3] 1.0.bias[4] "
            "1.1.0.weight[5, 4] 1.1.0.bias[5]");
  EXPECT_EQ(Names(*(*parts)[1]), "1.1.1.weight[6, 5] 1.1.1.bias[6]");
  EXPECT_EQ(Names(*(*parts)[2]), "1.2.weight[7, 6] 1.2.bias[7]");
  ShapeRecord record;
  EXPECT_EQ(
      ShapeOnlyForward(*(*parts)[1], {1, 4}, DType::kF32, Device{}, record)
          .status()
          .message(),
      "in module 1.1.1: linear takes x[..., K] and w[M, K] of one dtype, "
      "got f32[1, 4] and f32[6, 5]");
}

TEST(Lambda, IsAFunctionBetweenLayers) {
  Sequential model;
  model.Append<Linear>(3, 4);
  model.Append<Lambda>([](Context& ctx, const Tensor& x) {
    return ops::Mean(ctx, x, {1});  // [N, T, C] to [N, C]
  });
  model.Append<Linear>(4, 2);
  EXPECT_EQ(Names(model), "0.weight[4, 3] 0.bias[4] 2.weight[2, 4] 2.bias[2]");
  ShapeRecord record;
  const auto output =
      ShapeOnlyForward(model, {5, 7, 3}, DType::kF32, Device{}, record);
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->shape(), Shape({5, 2}));
  // A shape that does not fit is reported with the module's place in the model.
  Lambda nothing(nullptr);
  const auto none =
      ShapeOnlyForward(nothing, {5, 3}, DType::kF32, Device{}, record);
  EXPECT_EQ(std::string(none.status().message()),
            "nn::Lambda has no function; give it one");
  const auto bad = ShapeOnlyForward(model, {3}, DType::kF32, Device{}, record);
  EXPECT_EQ(std::string(bad.status().message()),
            "in module 1: mean takes floating numbers and axes of theirs, each "
            "once, got f32[4] and {1}");
}

TEST(Pool2d, TheStrideIsTheKernelUnlessGiven) {
  MaxPool2d pool(2);
  AvgPool2d overlapping(3, 1, 1);
  ShapeRecord record;
  auto pooled =
      ShapeOnlyForward(pool, {1, 28, 27, 3}, DType::kF32, Device{}, record);
  EXPECT_EQ(pooled->shape(), (Shape{1, 14, 13, 3}));
  auto same = ShapeOnlyForward(overlapping, {1, 28, 27, 3}, DType::kF32,
                               Device{}, record);
  EXPECT_EQ(same->shape(), (Shape{1, 28, 27, 3}));
}

TEST(Models, LeNetTakesImagesOf16AndMore) {
  EXPECT_TRUE(MakeLeNet({16, 16, 3}, 10, {}).ok());
  EXPECT_EQ(MakeLeNet({15, 28, 3}, 10, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  ShapeRecord record;
  for (std::int64_t size : {16, 17, 28, 32, 33}) {
    auto model = *MakeLeNet({size, size + 1, 3}, 7, {});
    auto output = ShapeOnlyForward(*model, {2, size, size + 1, 3}, DType::kF32,
                                   Device{}, record);
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_EQ(output->shape(), (Shape{2, 7}));
  }
}

}  // namespace
}  // namespace troupe::nn

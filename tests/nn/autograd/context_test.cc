#include "nn/autograd/context.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/collectives.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/models/models.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/relu.h"

namespace troupe::nn {
namespace {

// A block that fails, inside a block, inside a model.
class Inner : public Module {
 public:
  Inner() : wrong_(Add<Linear>("wrong", 7, 5)) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    Tensor y = wrong_(ctx, ops::Relu(ctx, x));
    reached_end = true;
    return ops::Relu(ctx, y);
  }
  bool reached_end = false;

 private:
  Linear& wrong_;
};

class Outer : public Module {
 public:
  Outer() : inner(Add<Inner>("inner")) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return inner(ctx, x);
  }
  Inner& inner;
};

TEST(Context, TheFirstErrorSticksWithThePathOfItsModule) {
  Sequential model;
  model.Append<Linear>(3, 4);
  Outer& outer = model.Append<Outer>();
  model.Append<Linear>(100, 1);  // wrong as well, but later
  ShapeRecord record;
  auto output = ShapeOnlyForward(model, {2, 3}, DType::kF32, Device{}, record);
  EXPECT_EQ(output.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      output.status().message(),
      "in module 1.inner.wrong: linear takes x[..., K] and w[M, K] of one "
      "dtype, got f32[2, 4] and f32[5, 7]");
  EXPECT_TRUE(outer.inner.reached_end);  // no plumbing: the code continues
}

// Lets a given number of parameters pass.
class CountingGate : public ParameterGate {
 public:
  explicit CountingGate(int left) : left_(left) {}
  absl::Status AwaitValue(const Parameter& parameter) override {
    asked += parameter.name + " ";
    return left_-- > 0 ? absl::OkStatus() : absl::CancelledError("enough");
  }
  std::string asked;

 private:
  int left_;
};

TEST(Context, AGateIsAskedBeforeEachParameterIsRead) {
  auto kernels = CreateReferenceKernels();
  CachingAllocator allocator;
  Sequential model;
  model.Append<Linear>(3, 4);
  model.Append<Linear>(4, 2);
  model.Parameters()[3]->requires_grad = false;
  auto arena =
      ParameterArena::Create({model.Parameters()}, {}, allocator).value();
  ASSERT_TRUE(arena->Initialize(/*seed=*/1).ok());
  const Tensor x = Tensor::Zeros({2, 3}, DType::kF32, allocator);
  CountingGate open(/*left=*/100);
  Context through(*kernels);
  through.set_gate(&open);
  EXPECT_TRUE(model(through, x).defined());
  // Parameters that are not trained are not updated, so they need no gate.
  EXPECT_EQ(open.asked, "0.weight 0.bias 1.weight ");
  CountingGate closed(/*left=*/2);
  Context stopped(*kernels);
  stopped.set_gate(&closed);
  model(stopped, x);
  EXPECT_EQ(stopped.status(), absl::CancelledError("in module 1: enough"));
}

TEST(Context, AfterAnErrorNothingRuns) {
  auto kernels = CreateReferenceKernels();
  Tape tape;
  Context ctx(*kernels, &tape);
  EXPECT_FALSE(ctx.Fail(absl::DataLossError("a disk died")).defined());
  EXPECT_FALSE(ctx.Fail(absl::InternalError("later")).defined());
  EXPECT_EQ(ctx.status(), absl::DataLossError("a disk died"));
  Tensor x = Tensor::Zeros({2}, DType::kF32, kernels->allocator());
  const auto before = kernels->allocator().stats().allocations;
  EXPECT_FALSE(ops::Relu(ctx, tape.Watch(x)).defined());
  EXPECT_EQ(kernels->allocator().stats().allocations, before);
  EXPECT_EQ(tape.num_nodes(), 0);
}

TEST(Context, AShapeOnlyForwardRecordsOpsParametersAndFlops) {
  auto model = MakeMlp({784, 512, 10}, {});
  ShapeRecord record;
  auto output =
      ShapeOnlyForward(*model, {32, 28, 28, 1}, DType::kF32, Device{}, record);
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->ToString(), "f32[32, 10] on cpu:0 (meta)");
  std::string seen;
  for (const auto& op : record.ops) {
    seen += op.module + " " + op.name + " " + op.output.ToString() + "\n";
  }
  EXPECT_EQ(seen,
            "0 flatten [32, 784]\n"
            "1 linear [32, 512]\n"
            "2 relu [32, 512]\n"
            "3 linear [32, 10]\n");
  EXPECT_EQ(record.flops(),
            2.0 * 32 * 784 * 512 + 32 * 512 + 2.0 * 32 * 512 * 10);
  ASSERT_EQ(record.parameters.size(), 4u);
  EXPECT_EQ(record.parameters[0]->name, "1.weight");
  EXPECT_EQ(record.parameters[3]->name, "3.bias");
}

TEST(Context, AShapeOnlyForwardRecordsWhereParametersAreUsed) {
  Sequential model;
  Linear& first = model.Append<Linear>(4, 4);
  model.Append<Linear>(4, 4).TieParameter("weight", first, "weight");
  ShapeRecord record;
  ASSERT_TRUE(
      ShapeOnlyForward(model, {2, 4}, DType::kF32, Device{}, record).ok());
  std::string uses;
  for (const ShapeRecord::Use& use : record.uses) {
    uses += use.parameter->name + " in " + use.module + "\n";
  }
  EXPECT_EQ(uses,
            "0.weight in 0\n0.bias in 0\n"
            "0.weight in 1\n1.bias in 1\n");
}

// A model too large for any memory can still be planned.
TEST(Context, AShapeOnlyForwardAllocatesNothing) {
  auto model = MakeMlp({1 << 20, 1 << 20, 1 << 20}, {});
  ShapeRecord record;
  auto output = ShapeOnlyForward(*model, {1 << 20, 1 << 20}, DType::kF32,
                                 Device{}, record);
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->shape(), (Shape{1 << 20, 1 << 20}));
  EXPECT_TRUE(record.parameters[0]->value.is_meta());
}

class NoPeers : public Collectives {
 public:
  int rank() const override { return 1; }
  int size() const override { return 2; }
  absl::Status AllReduce(ReduceOp, const Tensor&) override {
    return absl::UnavailableError("no peers");
  }
  absl::Status AllGather(const Tensor&, const Tensor&) override {
    return absl::UnavailableError("no peers");
  }
  absl::Status ReduceScatter(ReduceOp, const Tensor&, const Tensor&) override {
    return absl::UnavailableError("no peers");
  }
};

TEST(Context, HandsOutTheCollectivesOfAnAxis) {
  const std::unique_ptr<Kernels> kernels = CreateReferenceKernels();
  NoPeers dp, tp;
  const AxisCollectives axes[] = {{"dp", &dp}, {"tp", &tp}};
  Context ctx(*kernels);
  EXPECT_EQ(ctx.collectives("dp"), nullptr);
  ctx.set_collectives(axes);
  EXPECT_EQ(ctx.collectives("dp"), &dp);
  EXPECT_EQ(ctx.collectives("tp"), &tp);
  EXPECT_EQ(ctx.collectives("ep"), nullptr);
  // Ranks along dp evaluate different numbers of batches.
  ctx.set_training(false);
  EXPECT_EQ(ctx.collectives("dp"), nullptr);
  EXPECT_EQ(ctx.collectives("tp"), &tp);
}

TEST(Context, AShapeOnlyForwardNotesTheAxesAndDoesNotWait) {
  ShapeRecord record;
  Context ctx(Device{}, record);
  for (const char* axis : {"tp", "dp", "tp"}) {
    EXPECT_EQ(ctx.collectives(axis), nullptr);
  }
  EXPECT_EQ(record.axes, (std::vector<std::string>{"tp", "dp"}));
}

}  // namespace
}  // namespace troupe::nn

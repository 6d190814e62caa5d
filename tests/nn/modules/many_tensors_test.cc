// Modules of several inputs and outputs, and errors if the numbers do not fit.

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "nn/modules/embedding.h"
#include "nn/modules/linear.h"
#include "nn/modules/module.h"
#include "nn/modules/sequential.h"
#include "nn/ops/add.h"
#include "nn/ops/relu.h"

namespace troupe::nn {
namespace {

// x -> (x, relu(x))
class Fork : public Module {
 public:
  Fork() { set_many_tensors(); }
  TensorList ForwardMany(Context& ctx, absl::Span<const Tensor> xs) override {
    return {xs[0], ops::Relu(ctx, xs[0])};
  }
};

// (a, b) -> a + b
class Join : public Module {
 public:
  Join() { set_many_tensors(); }
  TensorList ForwardMany(Context& ctx, absl::Span<const Tensor> xs) override {
    if (xs.size() != 2) {
      ctx.Fail(absl::InvalidArgumentError("two tensors, please"));
      return {};
    }
    return {ops::Add(ctx, xs[0], xs[1])};
  }
};

class Nothing : public Module {};
class Undefined : public Module {
 public:
  Tensor Forward(Context&, const Tensor&) override { return Tensor(); }
};

std::string OutputOf(Module& model, const Shape& input) {
  ShapeRecord record;
  const absl::StatusOr<Tensor> output =
      ShapeOnlyForward(model, input, DType::kF32, Device{}, record);
  return output.ok() ? output->ToString()
                     : std::string(output.status().message());
}

TEST(ManyTensors, ASequentialHandsListsOn) {
  Sequential model;
  model.Append<Linear>(3, 4);
  model.Append<Fork>();
  model.Append<Join>();
  model.Append<Linear>(4, 2);
  EXPECT_EQ(OutputOf(model, {5, 3}), "f32[5, 2] on cpu:0 (meta)");
}

TEST(ManyTensors, InputsKeepTheirDTypes) {
  class Lookup : public Module {
   public:
    Lookup() : table_(Add<Embedding>("table", 10, 3)) { set_many_tensors(); }
    TensorList ForwardMany(Context& ctx, absl::Span<const Tensor> xs) override {
      return {ops::Add(ctx, table_(ctx, xs[0]), xs[1]), xs[0]};
    }

   private:
    Embedding& table_;
  };
  Lookup model;
  ShapeRecord record;
  const TensorSpec inputs[] = {{{2, 4}, DType::kI64}, {{2, 4, 3}, DType::kF32}};
  const auto outputs = ShapeOnlyForward(model, inputs, Device{}, record);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->size(), 2u);
  EXPECT_EQ((*outputs)[0].ToString(), "f32[2, 4, 3] on cpu:0 (meta)");
  EXPECT_EQ((*outputs)[1].ToString(), "i64[2, 4] on cpu:0 (meta)");
  ASSERT_EQ(record.parameters.size(), 1u);
  EXPECT_EQ(record.parameters[0]->name, "table.weight");
}

TEST(ManyTensors, AWrongNumberFailsWithThePath) {
  Sequential two;
  two.Append<Fork>();
  EXPECT_EQ(OutputOf(two, {5, 3}),
            "the last module gives 2 tensors; return one from the Forward() of "
            "the model");
  two.Append<Linear>(3, 3);
  EXPECT_EQ(OutputOf(two, {5, 3}),
            "in module 1: the module takes one tensor, not 2");
  Sequential one;
  one.Append<Join>();
  EXPECT_EQ(OutputOf(one, {5, 3}), "in module 0: two tensors, please");
  Fork fork;
  EXPECT_EQ(OutputOf(fork, {5, 3}),
            "the module was asked for one tensor, not 2");
}

TEST(ManyTensors, AModuleDefinesOneFormAndReturnsATensor) {
  Nothing nothing;
  EXPECT_EQ(OutputOf(nothing, {2}),
            "the module has no Forward(); define it, or call "
            "set_many_tensors() and define ForwardMany()");
  Sequential model;
  model.Append<Linear>(3, 3);
  model.Append<Undefined>();
  EXPECT_EQ(OutputOf(model, {1, 3}),
            "in module 1: Forward() returned an undefined tensor and no error; "
            "return a tensor, or call Context::Fail()");
}

}  // namespace
}  // namespace troupe::nn

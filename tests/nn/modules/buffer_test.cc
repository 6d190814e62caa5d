#include "nn/autograd/buffer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/linear.h"
#include "nn/modules/module.h"
#include "nn/modules/parameter_dtype.h"
#include "nn/modules/sequential.h"
#include "nn/ops/add.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

// Adds up its inputs, and returns them with the sum so far.
class Running : public Module {
 public:
  Running()
      : sum_(DeclareBuffer("running_sum", {2, 3}, /*initial=*/0.5)),
        calls_(DeclareBuffer("num_batches_tracked", {}, 3, DType::kI64)) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    const Tensor y = ops::Add(ctx, x, ctx.Use(sum_));
    ctx.Use(calls_);
    if (ctx.updates_buffers()) {
      if (!ctx.kernels().Add(sum_.value, x, sum_.value).ok()) return Tensor();
      ++*calls_.value.data<std::int64_t>();
    }
    return y;
  }
  Buffer& sum_;
  Buffer& calls_;
};

TEST(Buffers, AreF64InModelsOfF64AndF32InOthers) {
  Sequential model;
  model.Append<Linear>(3, 3);
  model.Append<Running>();
  const std::vector<Buffer*> buffers = model.Buffers();
  for (const auto& [dtype, want] : {std::pair(DType::kF64, DType::kF64),
                                    {DType::kBF16, DType::kF32},
                                    {DType::kF64, DType::kF64},
                                    {DType::kF16, DType::kF32},
                                    {DType::kF64, DType::kF64},
                                    {DType::kF32, DType::kF32}}) {
    SetParameterDType(model, dtype);
    EXPECT_EQ(buffers[0]->dtype, want) << DTypeName(dtype);
    EXPECT_EQ(buffers[0]->value.dtype(), want) << DTypeName(dtype);
    EXPECT_TRUE(buffers[0]->value.is_meta());
    EXPECT_EQ(buffers[1]->dtype, DType::kI64);
    EXPECT_EQ(model.Parameters()[0]->dtype, dtype);
  }
}

// A statistic of f64 has the digits of f64.
TEST(Buffers, KeepTheDigitsOfF64) {
  Running module;
  SetParameterDType(module, DType::kF64);
  const auto kernels = CreateReferenceKernels();
  ASSERT_TRUE(BindBuffers(module.Buffers(), *kernels).ok());
  Context ctx(*kernels);
  const Tensor x = MakeTensor({2, 3}, DType::kF64, std::vector<double>(6, 0.1),
                              kernels->allocator());
  module(ctx, x);
  ASSERT_TRUE(ctx.ok()) << ctx.status();
  EXPECT_EQ(ValuesOf(module.sum_.value), std::vector<double>(6, 0.6));
}

TEST(Buffers, HavePyTorchsNamesAndAreRecorded) {
  Sequential model;
  model.Append<Linear>(3, 3);
  model.Append<Running>();
  ShapeRecord record;
  ASSERT_TRUE(
      ShapeOnlyForward(model, {2, 3}, DType::kF32, Device{}, record).ok());
  EXPECT_EQ(model.Parameters().size(), 2u);
  std::string names;
  for (const Buffer* buffer : model.Buffers()) {
    absl::StrAppend(&names, buffer->name, buffer->shape.ToString(), " ");
  }
  EXPECT_EQ(names, "1.running_sum[2, 3] 1.num_batches_tracked[] ");
  EXPECT_EQ(record.buffers, model.Buffers());
  EXPECT_TRUE(record.buffers[0]->value.is_meta());
}

void ChangesInTrainingOnly(std::unique_ptr<Kernels> kernels) {
  Running module;
  ASSERT_TRUE(BindBuffers(module.Buffers(), *kernels).ok());
  const Tensor x = MakeTensor({2, 3}, DType::kF32, std::vector<double>(6, 2),
                              kernels->allocator());
  Tape tape;
  for (bool training : {false, true, true}) {
    Context ctx(*kernels, &tape);
    ctx.set_training(training);
    EXPECT_FALSE(tape.Tracks(module(ctx, x))) << "buffers are constants";
    EXPECT_TRUE(ctx.ok()) << ctx.status();
  }
  Context again(*kernels, &tape);
  again.set_recomputing(true);
  module(again, x);
  EXPECT_EQ(ValuesOf(module.sum_.value), std::vector<double>(6, 4.5));
  EXPECT_EQ(*module.calls_.value.data<std::int64_t>(), 5);
}

TEST(Buffers, ChangeInTrainingOnly) {
  ChangesInTrainingOnly(CreateReferenceKernels());
  ChangesInTrainingOnly(CreateCpuKernels({}));
}

TEST(Buffers, AValueThatTheTypeDoesNotHoldNamesTheBuffer) {
  class Half : public Module {
   public:
    Half() { DeclareBuffer("count", {}, 0.5, DType::kI32); }
    Tensor Forward(Context&, const Tensor& x) override { return x; }
  };
  Half module;
  const auto kernels = CreateCpuKernels({});
  const absl::Status status = BindBuffers(module.Buffers(), *kernels);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(status.message().find("buffer count: "), std::string::npos);
}

}  // namespace
}  // namespace troupe::nn

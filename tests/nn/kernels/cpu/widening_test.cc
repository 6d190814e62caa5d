#include "nn/kernels/cpu/widening.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn::cpu {
namespace {

using Values = std::vector<double>;

// An op with an operand of each kind.
using AnyOp = Op<absl::Status(In a, FixedIn fixed, bool accumulate, Grad grad,
                              Out out, InOut both)>;

// grad (+)= a;  out = both;  both += a.
absl::Status Compute(CpuDevice&, In a, In fixed, bool accumulate, Tensor& grad,
                     Tensor& out, Tensor& both) {
  EXPECT_EQ(fixed.dtype(), DType::kF64);
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const float from = a.data<float>()[i];
    float& g = grad.data<float>()[i];
    g = accumulate ? g + from : from;
    out.data<float>()[i] = both.data<float>()[i];
    both.data<float>()[i] += from;
  }
  return absl::OkStatus();
}

absl::Status Fail(CpuDevice&, In, In, bool, Tensor& grad, Tensor&, Tensor&) {
  grad.data<float>()[0] = 7;
  return absl::InternalError("no");
}

absl::Status ExpectNoGradients(CpuDevice&, In a, In, bool, Tensor& grad,
                               Tensor&, Tensor&) {
  EXPECT_TRUE(a.defined());
  EXPECT_FALSE(grad.defined());
  return absl::OkStatus();
}

class WideningTest : public testing::TestWithParam<DType> {
 protected:
  WideningTest() : cpu_(CpuKernelOptions()) { BindF32<Compute>(cpu_, op_); }

  Tensor Make(const Values& values) {
    return MakeTensor({static_cast<std::int64_t>(values.size())}, GetParam(),
                      values, cpu_.allocator());
  }

  CpuDevice cpu_;
  AnyOp op_{"Any"};
  Tensor fixed_ = Tensor::Zeros({1}, DType::kF64, cpu_.allocator());
};

TEST_P(WideningTest, ReadsAndWritesAsTheRolesSay) {
  for (bool accumulate : {false, true}) {
    Tensor a = Make({1, 2}), grad = Make({10, 20});
    Tensor out = Make({std::nan(""), std::nan("")}), both = Make({0.5, -4});
    ASSERT_TRUE(op_(a, fixed_, accumulate, grad, out, both).ok());
    EXPECT_EQ(ValuesOf(grad), accumulate ? (Values{11, 22}) : (Values{1, 2}));
    EXPECT_EQ(ValuesOf(out), (Values{0.5, -4}));
    EXPECT_EQ(ValuesOf(both), (Values{1.5, -2}));
    EXPECT_EQ(ValuesOf(a), (Values{1, 2}));
    EXPECT_EQ(grad.dtype(), GetParam());
  }
}

TEST_P(WideningTest, RoundsOnceOnTheWayBack) {
  // Rounded after each step, 2048 + 1 + 1 is 2048 in both 16-bit types.
  Tensor a = Make({2048}), grad = Make({0}), out = Make({0}), both = Make({3});
  ASSERT_TRUE(op_(a, fixed_, false, grad, out, both).ok());
  EXPECT_EQ(ValuesOf(both), ValuesOf(Make({2051})));
}

TEST_P(WideningTest, AnUndefinedOperandStaysUndefined) {
  BindF32<ExpectNoGradients>(cpu_, op_);
  Tensor a = Make({1}), none, out = Make({3}), both = Make({4});
  EXPECT_TRUE(op_(a, fixed_, true, none, out, both).ok());
  EXPECT_FALSE(none.defined());
}

TEST_P(WideningTest, AFailedCallWritesNothing) {
  if (GetParam() == DType::kF32) return;
  BindF32<Fail>(cpu_, op_);
  Tensor a = Make({1}), grad = Make({2}), out = Make({3}), both = Make({4});
  EXPECT_EQ(op_(a, fixed_, true, grad, out, both), absl::InternalError("no"));
  EXPECT_EQ(ValuesOf(grad), (Values{2}));
}

TEST_P(WideningTest, RefusesOtherDTypesByName) {
  op_.set_device(Device{DeviceType::kCpu, 1});
  Tensor a = Make({1}), grad = Make({2}), both = Make({4});
  Tensor out = Tensor::Zeros({1}, DType::kI32, cpu_.allocator());
  EXPECT_EQ(
      op_(a, fixed_, true, grad, out, both),
      absl::UnimplementedError("Any does not compute i32 on cpu:1; convert it "
                               "to another dtype"));
}

INSTANTIATE_TEST_SUITE_P(DTypes, WideningTest,
                         testing::Values(DType::kF32, DType::kBF16,
                                         DType::kF16),
                         [](const auto& info) {
                           return std::string(DTypeName(info.param));
                         });

}  // namespace
}  // namespace troupe::nn::cpu

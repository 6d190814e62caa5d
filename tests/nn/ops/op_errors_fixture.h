// Fixture of the tests of the fronts' errors: it makes tensors of zeros for the
// reference kernels, and returns the message with which an op fails.
//
//   class AddErrorsTest : public OpErrorsFixture {};
//   TEST_F(AddErrorsTest, ShapesMustFit) {
//     EXPECT_EQ(Message([&](Context& ctx) {
//                 return ops::Add(ctx, T({2}), T({3}));
//               }),
//               "add takes two tensors of one dtype ...");
//   }

#ifndef TESTS_NN_OPS_OP_ERRORS_FIXTURE_H_
#define TESTS_NN_OPS_OP_ERRORS_FIXTURE_H_

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/kernels/reference/reference_kernels.h"

namespace troupe::nn {

class OpErrorsFixture : public testing::Test {
 protected:
  Tensor T(const Shape& shape, DType dtype = DType::kF32) {
    return Tensor::Zeros(shape, dtype, kernels_->allocator());
  }
  // Calls `op` in a fresh context and returns the message of its error.
  template <typename Op>
  std::string Message(Op op) {
    Context ctx(*kernels_);
    EXPECT_FALSE(op(ctx).defined());
    EXPECT_EQ(ctx.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(ctx.status().message());
  }

  std::unique_ptr<Kernels> kernels_ = CreateReferenceKernels();
};

}  // namespace troupe::nn

#endif  // TESTS_NN_OPS_OP_ERRORS_FIXTURE_H_

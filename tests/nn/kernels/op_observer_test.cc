#include "nn/kernels/op_observer.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"

namespace troupe::nn {
namespace {

using testing::ElementsAre;

// Writes down what it hears.
class Log : public OpObserver {
 public:
  std::int64_t BeginOp(const OpCall& call) override {
    lines.push_back(absl::StrCat(
        ++count_, " ", call.name, " ",
        absl::StrJoin(call.tensors, " ", [](std::string* out, const Tensor* t) {
          absl::StrAppend(out, t->shape().ToString());
        })));
    EXPECT_EQ(OpNames()[call.number], std::string(call.name));
    return count_;
  }
  void EndOp(const OpCall& call, std::int64_t token) override {
    lines.push_back(absl::StrCat(token, " ", call.name, " ends"));
  }

  std::vector<std::string> lines;

 private:
  std::int64_t count_ = 0;
};

class OpObserverTest : public ::testing::Test {
 protected:
  Tensor New(const Shape& shape, DType dtype = DType::kF32) {
    return Tensor::Zeros(shape, dtype, kernels_->allocator());
  }

  const std::unique_ptr<Kernels> kernels_ = CreateCpuKernels({});
  Log log_;
};

TEST_F(OpObserverTest, HearsOfEachOpWithTheTensorsThatItHas) {
  const Tensor x = New({2, 3}), w = New({4, 3});
  Tensor y = New({2, 4}), z = New({2, 4});
  ObservedOps observed(*kernels_, log_);
  ASSERT_TRUE(kernels_->LinearForward(x, w, Tensor(), y).ok());
  ASSERT_TRUE(kernels_->ReluForward(y, z).ok());
  EXPECT_THAT(log_.lines,
              ElementsAre("1 LinearForward [2, 3] [4, 3] [2, 4]",
                          "1 LinearForward ends", "2 ReluForward [2, 4] [2, 4]",
                          "2 ReluForward ends"));
}

TEST_F(OpObserverTest, OpsComputeAndFailAsWithoutIt) {
  Tensor x = New({3}), numbers = New({3}, DType::kI64);
  const absl::Status plain = kernels_->ReluForward(numbers, numbers);
  ObservedOps observed(*kernels_, log_);
  ASSERT_TRUE(kernels_->Fill(-2, x).ok());
  EXPECT_EQ(x.span<float>()[2], -2);
  EXPECT_FALSE(plain.ok());
  EXPECT_EQ(kernels_->ReluForward(numbers, numbers), plain);
  EXPECT_EQ(log_.lines.back(), "2 ReluForward ends");
}

TEST_F(OpObserverTest, HearsNothingAfterRestore) {
  Tensor x = New({3});
  ObservedOps first(*kernels_, log_);
  first.Restore();
  ASSERT_TRUE(kernels_->Fill(1, x).ok());
  EXPECT_THAT(log_.lines, ElementsAre());
  ObservedOps second(*kernels_, log_);
  ASSERT_TRUE(kernels_->Fill(2, x).ok());
  EXPECT_EQ(log_.lines.size(), 2u);
  EXPECT_EQ(x.span<float>()[0], 2);
}

}  // namespace
}  // namespace troupe::nn

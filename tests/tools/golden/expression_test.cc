// Expressions as texts, with values and gradients that are known.

#include "tools/golden/expression.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/tensor/caching_allocator.h"
#include "tests/nn/testing/tensor_values.h"
#include "tools/golden/expression_ops.h"

namespace troupe::golden {
namespace {

using nn::DType;

using Values = std::map<std::string, std::vector<double>>;

class ExpressionTest : public ::testing::Test {
 protected:
  // Evaluates the text, whose expression is called "e", with x0 = {3, 1, 2} and
  // c0 = i64{2, 0}.
  absl::StatusOr<Values> Run(const std::string& text, DType dtype,
                             nn::Kernels& kernels) {
    nn::CachingAllocator memory;
    const std::string path = absl::StrCat(::testing::TempDir(), "/inputs");
    const std::vector<nn::NamedTensor> inputs = {
        {"e/x0", nn::MakeTensor({3}, DType::kF64, {3, 1, 2}, memory)},
        {"e/c0", nn::MakeTensor({2}, DType::kI64, {2, 0}, memory)}};
    EXPECT_TRUE(nn::WriteSafetensors(files_, path, inputs, {}).ok());
    TROUPE_ASSIGN_OR_RETURN(const nn::SafetensorsFile file,
                            nn::SafetensorsFile::Open(files_, path));
    TROUPE_ASSIGN_OR_RETURN(
        const std::vector<Expression> parsed,
        ParseExpressions(
            absl::StrCat("expression e\nx0 = input\nc0 = constant\n", text)));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<nn::NamedTensor> results,
                            Evaluate(parsed.at(0), file, dtype, kernels));
    Values values;
    for (const auto& [name, tensor] : results) {
      values[name] = nn::ValuesOf(tensor);
    }
    return values;
  }
  std::string Error(const std::string& text) {
    return std::string(Run(text, DType::kF64, *nn::CreateReferenceKernels())
                           .status()
                           .message());
  }

  base::PosixFileSystem files_;
};

TEST_F(ExpressionTest, HasValuesAndGradients) {
  const std::string text =
      "v0 v1 = Sort x0 axis=-1 descending=1\n"
      "v2 = IndexSelect v0 c0 axis=0\n"
      "v3 = - 10.5 v2\n"
      "v4 = * v3 v3\n"
      "v5 = Sum v4\n"
      "backward v5\n";
  const Values want = {
      {"e/v0", {3, 2, 1}},         {"e/v1", {0, 2, 1}},      {"e/v2", {1, 3}},
      {"e/v3", {9.5, 7.5}},        {"e/v4", {90.25, 56.25}}, {"e/v5", {146.5}},
      {"e/x0.grad", {-15, -19, 0}}};
  const auto reference = Run(text, DType::kF64, *nn::CreateReferenceKernels());
  ASSERT_TRUE(reference.ok()) << reference.status();
  EXPECT_EQ(*reference, want);
  const auto cpu = Run(text, DType::kF32, *nn::CreateCpuKernels({}));
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_EQ(*cpu, want);
}

TEST_F(ExpressionTest, AnInputThatBackwardDoesNotReachHasNoGradient) {
  const auto got =
      Run("x1 = Detached x0\nv0 = Sum x1\nv1 = Sum x0\n"
          "v2 = Mean v0\nv3 = MeanSquaredError x0 x1\n"
          "backward v3\n",
          DType::kF64, *nn::CreateReferenceKernels());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->at("e/v3"), std::vector<double>{0});
  EXPECT_EQ(got->at("e/x0.grad"), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(got->count("e/x1.grad"), 0u);
}

TEST_F(ExpressionTest, ErrorsHaveTheLine) {
  EXPECT_EQ(Error("v0 = Erf x0\n"),
            "v0 = Erf x0: there is no op \"Erf\"; add it to "
            "tools/golden/expression_ops.cc");
  EXPECT_EQ(Error("v0 = Exp v9\n"),
            "v0 = Exp v9: there is no value \"v9\"; name one of an earlier "
            "line");
  EXPECT_EQ(Error("v0 = Exp\n"), "v0 = Exp: it lacks operand 0; draw it anew");
  EXPECT_EQ(Error("v0 = Sort x0\n"),
            "v0 = Sort x0: it has 2 outputs; name all of them");
  EXPECT_EQ(Error("v0 = Pow x0 p=two\n"),
            "v0 = Pow x0 p=two: \"two\" must be a number");
  EXPECT_EQ(Error("v0 = MatMul x0 x0\n"),
            "v0 = MatMul x0 x0: matmul takes a[..., M, K] and b[..., K, N] of "
            "one dtype, got f64[3] and f64[3]");
  EXPECT_EQ(Error("v0 = Exp x0\nbackward v0\n"),
            "backward: Backward() begins at a loss or at one element, not at "
            "f64[3]; take its Sum() or Mean()");
  EXPECT_EQ(Error("v0 = Exp x0\n"),
            "backward: there is no value \"\"; name one of an earlier line");
}

TEST(ParseExpressions, NamesALineThatItDoesNotTake) {
  EXPECT_EQ(ParseExpressions("\nv0 = Exp x0\n").status().message(),
            "line 2: \"v0 = Exp x0\" stands before the first \"expression "
            "NAME\"; put such a line in front");
  EXPECT_EQ(ParseExpressions("expression 1\nExp x0\n").status().message(),
            "line 2: \"Exp x0\" is no step, \"outputs = op operands "
            "attributes\"; make it anew by tools/golden/expressions.py");
}

}  // namespace
}  // namespace troupe::golden

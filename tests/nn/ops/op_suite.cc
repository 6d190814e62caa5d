#include "tests/nn/ops/op_suite.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "tests/base/seeds.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> FillOf(const Operand& operand, const std::string& name) {
  const std::int64_t count = operand.shape.numel();
  std::vector<double> values(count, 0.0);
  switch (operand.fill) {
    case Operand::Fill::kNormal:
      return NormalDraws(name, count);
    case Operand::Fill::kPoison:
      return std::vector<double>(count, std::nan(""));
    case Operand::Fill::kZero:
      return values;
    case Operand::Fill::kSpecial: {
      const double special[] = {1,  std::nan(""), -1,   kInf, 0, 6e4, -0.0,
                                -2, -kInf,        1e-7, 2,    0, 2};
      for (std::int64_t i = 0; i < count; ++i) values[i] = special[i % 13];
      return values;
    }
    case Operand::Fill::kLabels:
      for (std::int64_t i = 0; i < count; ++i) {
        values[i] = i % 5 == 4 ? kIgnoredLabel : i * 7 % operand.classes;
      }
      return values;
    case Operand::Fill::kRows:
      for (std::int64_t i = 0; i < count; ++i) {
        values[i] = i * i % operand.classes;
      }
      return values;
  }
  return values;
}

struct Operands {
  std::vector<Tensor> in, out;
};

Operands MakeOperands(const OpCase& op, DType dtype, Kernels& kernels) {
  Operands made;
  int number = 0;
  auto make = [&](const Operand& operand) {
    const std::string name = absl::StrCat(op.name, "/", number++);
    return MakeTensor(operand.shape, operand.dtype.value_or(dtype),
                      FillOf(operand, name), kernels.allocator());
  };
  for (const Operand& operand : op.inputs) made.in.push_back(make(operand));
  for (const Operand& operand : op.outputs) made.out.push_back(make(operand));
  return made;
}

// Returns the tolerance of an output: losses are summed in f64 from elements of
// the compute type, which is f32 for the 16-bit types.
double Tolerance(const OpTest& test, const Tensor& output) {
  if (!IsFloating(output.dtype())) return 0;
  if (output.dtype() != DType::kF64) return OpTolerance(output.dtype());
  return OpTolerance(test.dtype == DType::kF64 ? DType::kF64 : DType::kF32);
}

std::vector<Tensor> SliceAll(const std::vector<Tensor>& tensors,
                             std::int64_t begin, std::int64_t end) {
  std::vector<Tensor> slices;
  for (const Tensor& tensor : tensors) {
    slices.push_back(tensor.Slice(begin, end));
  }
  return slices;
}

}  // namespace

std::vector<Tensor> RunCase(const OpTest& test, Kernels& kernels) {
  Operands operands = MakeOperands(test.op, test.dtype, kernels);
  const absl::Status status =
      test.op.run(kernels, operands.in, absl::MakeSpan(operands.out));
  EXPECT_TRUE(status.ok()) << status;
  return operands.out;
}

std::vector<OpTest> OpTests(const std::vector<Backend>& backends) {
  std::vector<OpTest> all;
  for (const Backend& backend : backends) {
    for (DType dtype : backend.dtypes) {
      for (OpCase& op : AllOpCases()) {
        if (op.host_only && backend.has_queues) continue;
        all.push_back({backend, std::move(op), dtype});
      }
    }
  }
  std::vector<OpTest> tests;
  for (const std::uint64_t i : Cases(all.size())) {
    tests.push_back(std::move(all[i]));
  }
  return tests;
}

std::vector<OpTest> ElementWiseOpTests(const std::vector<Backend>& backends) {
  std::vector<OpTest> tests;
  for (OpTest& test : OpTests(backends)) {
    if (test.op.element_wise) tests.push_back(std::move(test));
  }
  return tests;
}

std::string OpName(const testing::TestParamInfo<OpTest>& info) {
  return absl::StrCat(info.param.backend.name, "_", info.param.op.name, "_",
                      DTypeName(info.param.dtype));
}

std::string BackendName(const testing::TestParamInfo<Backend>& info) {
  return info.param.name;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AgreementSuite);
TEST_P(AgreementSuite, AgreesWithTheReference) {
  const OpTest& test = GetParam();
  const auto oracle = CreateReferenceKernels();
  const auto kernels = test.backend.create();
  const std::vector<Tensor> want = RunCase(test, *oracle);
  const std::vector<Tensor> got = RunCase(test, *kernels);
  double worst = 0;  // for docs/numerics.md
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::vector<double> mine = ValuesOf(got[i]);
    const std::vector<double> oracles = ValuesOf(want[i]);
    EXPECT_TRUE(Near(mine, oracles, Tolerance(test, want[i])))
        << "output " << i;
    const Difference difference = Compare(mine, oracles);
    worst = std::max({worst, difference.norm, difference.max});
  }
  RecordProperty("worst", absl::StrCat(worst));
}

// Expects the same bits at another address, on the second call, and in a second
// object.
TEST_P(OpSuite, GivesTheSameBitsAgain) {
  const OpTest& test = GetParam();
  const auto kernels = test.backend.create();
  const auto others = test.backend.create();
  const std::vector<Tensor> first = RunCase(test, *kernels);
  const std::vector<Tensor> again = RunCase(test, *kernels);
  const std::vector<Tensor> elsewhere = RunCase(test, *others);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(BitEqual(first[i], again[i])) << "output " << i;
    EXPECT_TRUE(BitEqual(first[i], elsewhere[i])) << "output " << i;
  }
}

TEST_P(ElementWiseSuite, AnElementHasTheSameBitsInEveryRange) {
  const OpTest& test = GetParam();
  const auto kernels = test.backend.create();
  const std::vector<Tensor> whole = RunCase(test, *kernels);
  const std::int64_t n = whole[0].numel();
  const std::pair<std::int64_t, std::int64_t> ranges[] = {
      {0, n - 1}, {1, n}, {3, n - 2}, {n / 2, n / 2 + 1}, {n / 3, n}, {0, 0}};
  for (auto [begin, end] : ranges) {
    if (begin > end || end > n) continue;
    Operands operands = MakeOperands(test.op, test.dtype, *kernels);
    std::vector<Tensor> in = SliceAll(operands.in, begin, end);
    std::vector<Tensor> out = SliceAll(operands.out, begin, end);
    const std::vector<Tensor> want = SliceAll(whole, begin, end);
    ASSERT_TRUE(test.op.run(*kernels, in, absl::MakeSpan(out)).ok());
    const Operands untouched = MakeOperands(test.op, test.dtype, *kernels);
    for (std::size_t i = 0; i < out.size(); ++i) {
      EXPECT_TRUE(BitEqual(out[i], want[i])) << begin << ".." << end;
      EXPECT_TRUE(BitEqual(operands.out[i].Slice(0, begin),
                           untouched.out[i].Slice(0, begin)));
      EXPECT_TRUE(BitEqual(operands.out[i].Slice(end, n),
                           untouched.out[i].Slice(end, n)))
          << "wrote beyond " << end;
    }
  }
}

TEST_P(BackendSuite, SaysWhatItIs) {
  const auto kernels = GetParam().create();
  EXPECT_EQ(kernels->Describe().find(kernels->device().ToString()), 0u)
      << kernels->Describe();
  EXPECT_EQ(kernels->Describe().find('\n'), std::string::npos);
  EXPECT_EQ(kernels->allocator().device(), kernels->device());
}

TEST_P(BackendSuite, ALabelOutsideTheClassesIsAnErrorThatNamesIt) {
  const auto kernels = GetParam().create();
  Allocator& memory = kernels->allocator();
  Tensor logits = Tensor::Zeros({3, 4}, DType::kF32, memory);
  Tensor stats = Tensor::Zeros({3}, DType::kF64, memory);
  Tensor dlogits = Tensor::Zeros({3, 4}, DType::kF32, memory);
  for (std::int64_t wrong : {4, -1, 1 << 30}) {
    Tensor labels = Tensor::Of<std::int64_t>({3}, {0, wrong, 1}, memory);
    const absl::Status status = kernels->SoftmaxCrossEntropy(
        logits, labels, kIgnoredLabel, stats, dlogits);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    for (const std::string& word :
         {std::string("row 1"), absl::StrCat(wrong)}) {
      EXPECT_NE(status.message().find(word), absl::string_view::npos) << status;
    }
  }
}

TEST_P(BackendSuite, AnIndexOutsideTheAxisIsNamed) {
  const auto kernels = GetParam().create();
  Allocator& memory = kernels->allocator();
  Tensor x = Tensor::Zeros({2, 3, 4}, DType::kF32, memory);
  Tensor y = Tensor::Zeros({2, 2, 4}, DType::kF32, memory);
  for (std::int64_t wrong : {3, -1, 1 << 30}) {
    Tensor index = Tensor::Of<std::int64_t>({1, 2, 1}, {0, wrong}, memory);
    const absl::Status status = kernels->GatherAxis(x, index, y);
    EXPECT_EQ(status,
              absl::OutOfRangeError(absl::StrCat(
                  "index 1 is ", wrong, ", but the axis has 3 elements")));
  }
}

// Sums over no samples are zeros, and gradients get no addend.
TEST_P(BackendSuite, AnEmptyBatchAddsNothing) {
  const auto kernels = GetParam().create();
  int found = 0;
  for (const OpCase& op : AllOpCases()) {
    const bool empty = !op.inputs.empty() && op.inputs[0].shape.rank() > 1 &&
                       op.inputs[0].shape[0] == 0;
    if (!empty || (op.host_only && GetParam().has_queues)) continue;
    ++found;
    Operands operands = MakeOperands(op, DType::kF32, *kernels);
    const Operands before = MakeOperands(op, DType::kF32, *kernels);
    ASSERT_TRUE(
        op.run(*kernels, operands.in, absl::MakeSpan(operands.out)).ok());
    for (std::size_t i = 0; i < operands.out.size(); ++i) {
      std::vector<double> want = ValuesOf(before.out[i]);
      if (op.outputs[i].fill == Operand::Fill::kPoison)
        want.assign(want.size(), 0);
      EXPECT_EQ(ValuesOf(operands.out[i]), want) << op.name << ", output " << i;
    }
  }
  EXPECT_EQ(found, GetParam().has_queues ? 117 : 120)
      << "a new case of an empty batch counts here";
}

// Compares a norm with a sum with separate ops, bit by bit, on rows of d
// elements.
void ExpectNormsWithSums(Kernels& kernels, DType dtype, std::int64_t d) {
  const NormRule rule;
  const Shape shape = {7, 1, d};
  const auto normal = [&](const char* name, const Shape& of) {
    return MakeTensor(of, dtype, NormalDraws(name, of.numel()),
                      kernels.allocator());
  };
  const auto empty = [&] {
    return Tensor::Zeros(shape, dtype, kernels.allocator());
  };
  const Tensor a = normal("a", shape), b = normal("b", shape);
  const Tensor w = normal("w", {d}), bias = normal("bias", {d});
  Tensor sum = empty(), y = empty(), sum_at_once = empty(), at_once = empty();
  Tensor stats = Tensor::Zeros({7, 1, 2}, DType::kF64, kernels.allocator());
  Tensor stats_at_once =
      Tensor::Zeros(stats.shape(), DType::kF64, kernels.allocator());
  ASSERT_TRUE(kernels.Add(a, b, sum).ok());
  ASSERT_TRUE(kernels.NormForward(rule, sum, w, bias, y, stats).ok());
  ASSERT_TRUE(kernels
                  .AddNormForward(rule, a, b, w, bias, sum_at_once, at_once,
                                  stats_at_once)
                  .ok());
  EXPECT_EQ(ValuesOf(sum_at_once), ValuesOf(sum));
  EXPECT_EQ(ValuesOf(at_once), ValuesOf(y));
  EXPECT_EQ(ValuesOf(stats_at_once), ValuesOf(stats));

  Tensor dx = empty(), added = empty();
  ASSERT_TRUE(kernels.NormBackwardInput(rule, sum, stats, w, b, dx).ok());
  ASSERT_TRUE(kernels.Add(a, dx, added).ok());
  ASSERT_TRUE(
      kernels.AddNormBackwardInput(rule, sum, stats, w, b, a, at_once).ok());
  EXPECT_EQ(ValuesOf(at_once), ValuesOf(added));
}

TEST_P(BackendSuite, ANormWithASumHasTheBitsOfBoth) {
  const auto kernels = GetParam().create();
  for (const DType dtype : GetParam().dtypes) {
    for (const std::int64_t d : {19, 64, 5003}) {
      SCOPED_TRACE(absl::StrCat(DTypeName(dtype), ", rows of ", d));
      ExpectNormsWithSums(*kernels, dtype, d);
    }
  }
}

// Compares a gradient in the memory of its logits with one in its own, bit by
// bit.
void ExpectCrossEntropyOverLogits(Kernels& kernels, DType dtype,
                                  std::int64_t classes, double smoothing) {
  constexpr std::int64_t kRows = 9;
  Allocator& memory = kernels.allocator();
  const std::vector<double> draws = NormalDraws("logits", kRows * classes);
  const Tensor logits = MakeTensor({kRows, classes}, dtype, draws, memory);
  Tensor over = MakeTensor({kRows, classes}, dtype, draws, memory);
  Tensor apart = Tensor::Zeros({kRows, classes}, dtype, memory);
  Tensor labels = Tensor::Zeros({kRows}, DType::kI64, memory);
  for (std::int64_t row = 0; row < kRows; ++row) {
    labels.data<std::int64_t>()[row] =
        row == 4 ? kIgnoredLabel : row * 7919 % classes;
  }
  Tensor stats = Tensor::Zeros({3}, DType::kF64, memory);
  Tensor stats_over = Tensor::Zeros({3}, DType::kF64, memory);
  const auto run = [&](const Tensor& from, Tensor& sums, Tensor& gradient) {
    if (smoothing == 0) {
      return kernels.SoftmaxCrossEntropy(from, labels, kIgnoredLabel, sums,
                                         gradient);
    }
    return kernels.WeightedCrossEntropy(
        from, labels, Tensor(), {kIgnoredLabel, smoothing}, sums, gradient);
  };
  ASSERT_TRUE(run(logits, stats, apart).ok());
  ASSERT_TRUE(run(over, stats_over, over).ok());
  EXPECT_EQ(ValuesOf(stats_over), ValuesOf(stats));
  EXPECT_EQ(ValuesOf(over), ValuesOf(apart));
}

TEST_P(BackendSuite, CrossEntropyOverItsLogitsHasTheSameBits) {
  const auto kernels = GetParam().create();
  for (const DType dtype : GetParam().dtypes) {
    for (const std::int64_t classes : {10, 257, 5000}) {
      for (const double smoothing : {0.0, 0.1}) {
        SCOPED_TRACE(absl::StrCat(DTypeName(dtype), ", ", classes,
                                  " classes, smoothed by ", smoothing));
        ExpectCrossEntropyOverLogits(*kernels, dtype, classes, smoothing);
      }
    }
  }
}

TEST_P(BackendSuite, ADTypeWithoutKernelsIsNamed) {
  const auto kernels = GetParam().create();
  Tensor x = Tensor::Zeros({4}, DType::kI64, kernels->allocator());
  Tensor y = Tensor::Zeros({4}, DType::kI64, kernels->allocator());
  const absl::Status status = kernels->ReluForward(x, y);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  for (const std::string& word :
       {std::string("ReluForward"), std::string("i64"),
        kernels->device().ToString()}) {
    EXPECT_NE(status.message().find(word), absl::string_view::npos) << status;
  }
}

}  // namespace troupe::nn

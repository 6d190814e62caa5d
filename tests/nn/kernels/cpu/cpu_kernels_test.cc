// Tests of the cpu kernels beyond those of //tests/nn/ops: shapes on both sides
// of every choice of kernel, operands at any address, and choices that only the
// cpu set has. Results are compared with the reference kernels.

#include "nn/kernels/cpu/cpu_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "tests/base/seeds.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

struct Set {
  std::string name;
  CpuKernelOptions options;
  DType dtype = DType::kF32;

  // For the norm, and for the largest element: the last digit of bf16, whose
  // sums are in f32.
  double tolerance() const { return dtype == DType::kBF16 ? 0x1p-8 : 3e-6; }
};

std::vector<Set> Sets() {
  const std::pair<base::CpuIsa, const char*> isas[] = {
      {base::CpuIsa::kPlain, "plain"},
      {base::CpuIsa::kAvx2, "avx2"},
      {base::CpuIsa::kAvx512, "avx512"}};
  std::vector<Set> sets;
  for (auto [isa, name] : isas) {
    if (isa <= base::BestCpuIsa()) sets.push_back({name, {isa, 1, false}});
  }
  sets.push_back({"onednn", {base::BestCpuIsa(), 1, true}});
  sets.push_back({"onednn_2_threads", {base::BestCpuIsa(), 2, true}});
  CpuKernelOptions options;
  sets.push_back({"bf16", options, DType::kBF16});
  options.bf16 = false;
  sets.push_back({"bf16_in_f32", options, DType::kBF16});
  options.bf16 = true;
  options.threads = 2;
  sets.push_back({"bf16_2_threads", options, DType::kBF16});
  options.onednn = false;
  sets.push_back({"bf16_own_loops", options, DType::kBF16});
  return sets;
}

// Makes tensors that begin `shift` elements behind a cache line.
class Shifted {
 public:
  Shifted(Kernels& kernels, std::int64_t shift, DType dtype = DType::kF32)
      : kernels_(kernels), shift_(shift), dtype_(dtype) {}

  Tensor operator()(const Shape& shape) {
    const Tensor draws = MakeTensor(
        shape, dtype_,
        NormalDraws(absl::StrCat("operand ", made_++), shape.numel()),
        kernels_.allocator());
    Tensor room =
        Tensor::Zeros({shape.numel() + shift_}, dtype_, kernels_.allocator());
    Tensor t = room.FlatView(shift_, shape);
    std::memcpy(t.raw(), draws.raw(), draws.bytes());
    return t;
  }

 private:
  Kernels& kernels_;
  const std::int64_t shift_;
  const DType dtype_;
  int made_ = 0;
};

using Outcomes = std::vector<Tensor>;
using Program = std::function<Outcomes(Kernels&, Shifted)>;

Outcomes Linear(std::int64_t N, std::int64_t K, std::int64_t M, Kernels& k,
                Shifted make) {
  Tensor x = make({N, K}), w = make({M, K}), b = make({M}), dy = make({N, M});
  Tensor y = make({N, M}), dx = make({N, K});
  Tensor dw = make({M, K}), db = make({M}), more_dw = make({M, K});
  Tensor more_db = make({M});
  EXPECT_TRUE(k.LinearForward(x, w, b, y).ok());
  EXPECT_TRUE(k.LinearBackwardInput(dy, w, dx).ok());
  EXPECT_TRUE(k.LinearBackwardWeight(x, dy, false, dw, db).ok());
  EXPECT_TRUE(k.LinearBackwardWeight(x, dy, true, more_dw, more_db).ok());
  return {y, dx, dw, db, more_dw, more_db};
}

Outcomes Conv(const Window2d& window, const Shape& x_shape, std::int64_t O,
              Kernels& k, Shifted make) {
  const Shape y_shape = {x_shape[0], window.OutH(x_shape[1]),
                         window.OutW(x_shape[2]), O};
  const Shape w_shape = {O, x_shape[3], window.kernel_h, window.kernel_w};
  Tensor x = make(x_shape), w = make(w_shape), b = make({O});
  Tensor dy = make(y_shape), y = make(y_shape), dx = make(x_shape);
  Tensor dw = make(w_shape), db = make({O}), more_dw = make(w_shape);
  Tensor more_db = make({O});
  EXPECT_TRUE(k.Conv2dForward(window, x, w, b, y).ok());
  EXPECT_TRUE(k.Conv2dBackwardInput(window, dy, w, dx).ok());
  EXPECT_TRUE(k.Conv2dBackwardWeight(window, x, dy, false, dw, db).ok());
  EXPECT_TRUE(
      k.Conv2dBackwardWeight(window, x, dy, true, more_dw, more_db).ok());
  return {y, dx, dw, db, more_dw, more_db};
}

Outcomes Pool(const Window2d& window, const Shape& x_shape, Kernels& k,
              Shifted make) {
  const Shape y_shape = {x_shape[0], window.OutH(x_shape[1]),
                         window.OutW(x_shape[2]), x_shape[3]};
  Tensor x = make(x_shape), dy = make(y_shape), y = make(y_shape);
  Tensor dx = make(x_shape);
  Tensor at = Tensor::Zeros(y_shape, DType::kI32, k.allocator());
  EXPECT_TRUE(k.MaxPool2dForward(window, x, y, at).ok());
  EXPECT_TRUE(k.MaxPool2dBackward(window, dy, at, dx).ok());
  return {y, dx};
}

struct Case {
  std::string name;
  Program run;
};

// Shapes on both sides of: w or x transposed, every number of samples up to 20
// (w transposed in registers up to 16), tails of every width, sums longer than
// a chain, weights that oneDNN handles, gradients of many rows (written row by
// row, operands copied or not).
void AddLinears(std::vector<Case>& cases) {
  std::vector<std::array<std::int64_t, 3>> shapes = {
      {1, 5, 3},      {3, 70, 9},     {4, 70, 9},       {5, 16, 16},
      {20, 10, 10},   {20, 10, 5},    {16, 400, 120},   {17, 31, 33},
      {33, 65, 7},    {64, 513, 10},  {67, 1100, 130},  {130, 48, 200},
      {700, 3, 100},  {64, 300, 64},  {24, 1030, 1031}, {600, 330, 150},
      {40, 203, 170}, {40, 208, 170}, {5, 2100, 70},    {100, 64, 40},
      {100, 65, 41}};
  for (std::int64_t n = 1; n <= 20; ++n) shapes.push_back({n, 300 + n, 78});
  for (const auto& s : shapes) {
    cases.push_back({absl::StrCat("linear_", s[0], "x", s[1], "x", s[2]),
                     [N = s[0], K = s[1], M = s[2]](Kernels& k, Shifted make) {
                       return Linear(N, K, M, k, make);
                     }});
  }
}

// Shapes on both sides of: planar or channels, gradients by outputs or by runs,
// padded or not, many channels (oneDNN), long sums, 1x1.
void AddConvs(std::vector<Case>& cases) {
  const std::tuple<std::string, Window2d, Shape, std::int64_t> all[] = {
      {"toy_first", {5, 5}, {2, 32, 32, 3}, 6},
      {"toy_second", {5, 5}, {2, 14, 14, 6}, 16},
      {"grey", {3, 3, 1, 1, 1, 1}, {2, 28, 28, 1}, 32},
      {"one_output", {3, 3}, {2, 20, 40, 2}, 1},
      {"strided", {7, 7, 2, 2, 3, 3}, {1, 18, 18, 3}, 24},
      {"uneven", {2, 3, 3, 2, 1, 0}, {3, 11, 9, 5}, 7},
      {"many_channels", {3, 3, 1, 1, 1, 1}, {2, 8, 8, 32}, 48},
      {"small_images", {3, 3, 1, 1, 1, 1}, {2, 4, 4, 160}, 40},
      {"leftover", {3, 3, 4, 4, 0, 0}, {2, 9, 10, 16}, 16},
      {"few_pixels", {3, 3, 1, 1, 1, 1}, {2, 3, 3, 180}, 170},
      {"pointwise", {1, 1}, {2, 7, 7, 40}, 24},
      {"pointwise_strided", {1, 1, 2, 2, 0, 0}, {2, 7, 8, 20}, 17},
  };
  for (const auto& [name, window, x, O] : all) {
    cases.push_back({"conv_" + name,
                     [window = window, x = x, O = O](Kernels& k, Shifted make) {
                       return Conv(window, x, O, k, make);
                     }});
  }
}

void AddPools(std::vector<Case>& cases) {
  const Window2d halve{2, 2, 2, 2}, three{3, 3, 2, 2, 1, 1};
  for (std::int64_t C : {1, 2, 3, 5, 6, 8, 9, 16, 33}) {
    for (const auto& [name, window] :
         {std::pair("halve", halve), std::pair("three", three)}) {
      for (const Shape& x : {Shape{2, 10, 14, C}, Shape{1, 7, 5, C}}) {
        cases.push_back({absl::StrCat("pool_", name, "_", x[1], "x", C),
                         [window = window, x](Kernels& k, Shifted make) {
                           return Pool(window, x, k, make);
                         }});
      }
    }
  }
}

// Returns all cases; some of them under sanitizers.
std::vector<Case> CasesToTry() {
  std::vector<Case> cases;
  AddLinears(cases);
  AddConvs(cases);
  AddPools(cases);
  std::vector<Case> some;
  for (std::uint64_t i : Cases(cases.size())) some.push_back(cases[i]);
  return some;
}

class CpuKernelsTest : public testing::TestWithParam<Set> {};

TEST_P(CpuKernelsTest, AgreeWithTheReferenceOnBothSidesOfEveryChoice) {
  const auto oracle = CreateReferenceKernels();
  const auto kernels = CreateCpuKernels(GetParam().options);
  for (const Case& c : CasesToTry()) {
    const DType dtype = GetParam().dtype;
    const Outcomes want = c.run(*oracle, Shifted(*oracle, 0, dtype));
    const Outcomes got = c.run(*kernels, Shifted(*kernels, 0, dtype));
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(
          Near(ValuesOf(got[i]), ValuesOf(want[i]), GetParam().tolerance()))
          << c.name << ", outcome " << i;
    }
  }
}

TEST_P(CpuKernelsTest, GiveTheSameBitsAtAnyAddressAndOnEveryCall) {
  const auto kernels = CreateCpuKernels(GetParam().options);
  for (const Case& c : CasesToTry()) {
    const DType dtype = GetParam().dtype;
    const Outcomes first = c.run(*kernels, Shifted(*kernels, 0, dtype));
    for (std::int64_t shift : {0, 1, 7}) {
      const Outcomes again = c.run(*kernels, Shifted(*kernels, shift, dtype));
      for (std::size_t i = 0; i < first.size(); ++i) {
        EXPECT_TRUE(BitEqual(again[i], first[i]))
            << c.name << ", outcome " << i << ", " << shift
            << " elements behind a cache line";
      }
    }
  }
}

// A row of a batch does not depend on the rows beside it, as long as the shape
// chooses the same kernel.
TEST_P(CpuKernelsTest, ASampleHasTheSameBitsAmongOtherSamples) {
  const auto kernels = CreateCpuKernels(GetParam().options);
  Shifted make(*kernels, 0, GetParam().dtype);
  Tensor x = make({64, 40}), w = make({24, 40}), b = make({24}),
         y = make({64, 24});
  ASSERT_TRUE(kernels->LinearForward(x, w, b, y).ok());
  for (std::int64_t begin : {1, 5, 30}) {
    Tensor part = make({34, 24});
    ASSERT_TRUE(
        kernels->LinearForward(x.Slice(begin, begin + 34), w, b, part).ok());
    EXPECT_TRUE(BitEqual(part, y.Slice(begin, begin + 34))) << begin;
  }
}

// Generation computes one row for a text, or several texts together, and has
// the bits of a forward of all tokens (docs/numerics.md).
TEST_P(CpuKernelsTest, ARowHasTheSameBitsInAnyNumberOfFewRows) {
  if (GetParam().dtype != DType::kF32) {
    GTEST_SKIP() << "in bf16 the kernel depends on the number of rows";
  }
  const auto kernels = CreateCpuKernels(GetParam().options);
  Shifted make(*kernels, 0, GetParam().dtype);
  for (const std::int64_t K : {19, 256, 600}) {
    Tensor x = make({20, K}), w = make({70, K}), b = make({70});
    Tensor y = make({20, 70});
    ASSERT_TRUE(kernels->LinearForward(x, w, b, y).ok());
    for (std::int64_t count = 1; count < 20; ++count) {
      Tensor part = make({count, 70});
      ASSERT_TRUE(
          kernels->LinearForward(x.Slice(20 - count, 20), w, b, part).ok());
      EXPECT_TRUE(BitEqual(part, y.Slice(20 - count, 20))) << count << " " << K;
    }
  }
}

// Few rows are computed panel by panel, many row by row.
TEST_P(CpuKernelsTest, AGradientHasTheSameBitsAmongOtherRows) {
  if (GetParam().options.threads > 1) {
    GTEST_SKIP() << "oneDNN computes it, and cuts it among threads as it likes";
  }
  const auto kernels = CreateCpuKernels(GetParam().options);
  const std::int64_t N = 540, K = 300, M = 160, kPart = 50;
  Shifted make(*kernels, 0, GetParam().dtype);
  Tensor x = make({N, K}), dy = make({N, M}), dw = make({M, K});
  Tensor none;
  ASSERT_TRUE(kernels->LinearBackwardWeight(x, dy, false, dw, none).ok());
  for (std::int64_t begin : {0, 37, 110}) {
    Tensor part_dy = make({N, kPart}), part_dw = make({kPart, K});
    for (std::int64_t i = 0; i < N; ++i) {
      Tensor to = part_dy.Slice(i, i + 1);
      const Tensor from = dy.FlatView(i * M + begin, {1, kPart});
      std::memcpy(to.raw(), from.raw(), from.bytes());
    }
    ASSERT_TRUE(
        kernels->LinearBackwardWeight(x, part_dy, false, part_dw, none).ok());
    EXPECT_TRUE(BitEqual(part_dw, dw.Slice(begin, begin + kPart))) << begin;
  }
}

// If a gradient is computed by parts, they have the bits of the whole.
TEST_P(CpuKernelsTest, RowsOfAGradientHaveTheBitsOfTheWhole) {
  const auto kernels = CreateCpuKernels(GetParam().options);
  const DType dtype = GetParam().dtype;
  struct Size {
    std::int64_t n, k, m;
  };
  for (const auto& [N, K, M] : {Size{8, 2048, 130}, Size{64, 784, 512},
                                Size{300, 500, 331}, Size{33, 1001, 400}}) {
    const std::int64_t rows = kernels->LinearGradientRows(dtype, N, K, M);
    if (GetParam().options.threads > 1) {
      EXPECT_EQ(rows, 0);
    }
    if (rows == 0) continue;
    Shifted make(*kernels, 0, dtype);
    Tensor x = make({N, K}), dy = make({N, M}), dw = make({M, K}), none;
    ASSERT_TRUE(kernels->LinearBackwardWeight(x, dy, false, dw, none).ok());
    for (std::int64_t begin : {std::int64_t{0}, rows, M - rows}) {
      Tensor part = make({rows, K});
      ASSERT_TRUE(kernels->LinearBackwardWeightRows(x, dy, begin, part).ok());
      EXPECT_TRUE(BitEqual(part, dw.Slice(begin, begin + rows)))
          << N << " samples, " << K << " to " << M << ", from " << begin;
    }
  }
  EXPECT_EQ(kernels->LinearGradientRows(dtype, 64, 32, 32), 0)
      << "all of it is in the cache";
}

// One chain over all rows would have an error of 6e-4 to 4e-3: each term is
// rounded to a multiple of the sum's last digit.
TEST_P(CpuKernelsTest, ABiasGradientOfManyRowsKeepsItsDigits) {
  const auto kernels = CreateCpuKernels(GetParam().options);
  const std::int64_t N = std::int64_t{1} << 20;
  for (std::int64_t M : {1, 3, 17}) {
    Tensor x = Tensor::Zeros({N, 1}, DType::kF32, kernels->allocator());
    Tensor dy = Tensor::Zeros({N, M}, DType::kF32, kernels->allocator());
    for (float& each : dy.span<float>()) each = 0.1f;
    const std::vector<double> want(M, static_cast<double>(0.1f) * N);
    Tensor dw = Tensor::Zeros({M, 1}, DType::kF32, kernels->allocator());
    Tensor db = Tensor::Zeros({M}, DType::kF32, kernels->allocator());
    ASSERT_TRUE(kernels->LinearBackwardWeight(x, dy, false, dw, db).ok());
    EXPECT_TRUE(Near(ValuesOf(db), want, 1e-4)) << M << " columns";
  }
}

// As in PyTorch, the last NaN of a window wins, and gets the gradient.
TEST_P(CpuKernelsTest, OfSeveralNansInAWindowTheLastWins) {
  const auto oracle = CreateReferenceKernels();
  const auto kernels = CreateCpuKernels(GetParam().options);
  const Window2d windows[] = {{2, 2, 2, 2}, {3, 3, 1, 1, 1, 1}};
  for (std::int64_t C : {1, 3, 8, 17}) {
    for (const Window2d& window : windows) {
      const Shape x_shape = {1, 4, 6, C};
      const Shape y_shape = {1, window.OutH(4), window.OutW(6), C};
      std::vector<double> values(x_shape.numel(), std::nan(""));
      for (std::int64_t i = 12 * C; i < 24 * C; i += 3) values[i] = 1;
      std::vector<std::vector<double>> results;
      for (Kernels* k : {oracle.get(), kernels.get()}) {
        Shifted make(*k, 0);
        Tensor x = MakeTensor(x_shape, DType::kF32, values, k->allocator());
        Tensor y = make(y_shape), dy = make(y_shape), dx = make(x_shape);
        Tensor at = Tensor::Zeros(y_shape, DType::kI32, k->allocator());
        ASSERT_TRUE(k->MaxPool2dForward(window, x, y, at).ok());
        ASSERT_TRUE(k->MaxPool2dBackward(window, dy, at, dx).ok());
        results.push_back(ValuesOf(at));
        results.push_back(ValuesOf(dx));
      }
      EXPECT_EQ(results[0][0], 7) << "all of the first window are NaN";
      EXPECT_EQ(results[2], results[0]) << C << " channels";
      EXPECT_TRUE(Near(results[3], results[1], 3e-6)) << C << " channels";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, CpuKernelsTest, testing::ValuesIn(Sets()),
                         [](const testing::TestParamInfo<Set>& info) {
                           return info.param.name;
                         });

TEST(CpuKernelsFill, RefusesWhatAnIntegerTypeDoesNotHold) {
  const auto kernels = CreateCpuKernels({});
  const auto fills = [&](DType dtype, double value) {
    Tensor y = Tensor::Zeros({3}, dtype, kernels->allocator());
    const absl::Status status = kernels->Fill(value, y);
    EXPECT_EQ(ValuesOf(y), std::vector<double>(3, status.ok() ? value : 0));
    return status.ok();
  };
  EXPECT_TRUE(fills(DType::kU8, 255));
  EXPECT_FALSE(fills(DType::kU8, 256));
  EXPECT_FALSE(fills(DType::kU8, 300));
  EXPECT_FALSE(fills(DType::kU8, -1));
  EXPECT_TRUE(fills(DType::kI32, -0x1p31));
  EXPECT_FALSE(fills(DType::kI32, 0x1p31));
  EXPECT_FALSE(fills(DType::kI32, 0.5));
  EXPECT_FALSE(fills(DType::kI64, 0x1p63));
  EXPECT_FALSE(fills(DType::kI64, std::nan("")));
}

TEST(CpuKernelsDescribe, NamesInstructionSetThreadsAndLibrary) {
  CpuKernelOptions options;
  options.isa = base::CpuIsa::kPlain;
  options.onednn = false;
  EXPECT_EQ(CreateCpuKernels(options)->Describe(), "cpu:0, plain, 1 thread");
  options.isa = base::BestCpuIsa();
  options.threads = 2;
  options.onednn = true;
  const std::string words = CreateCpuKernels(options)->Describe();
  EXPECT_NE(words.find("2 threads, oneDNN 2."), std::string::npos) << words;
}

// exp is exact to an ulp or two wherever a logit is below the largest.
TEST(CpuKernelsSoftmax, FollowsTheReferenceOverTheWholeRange) {
  const auto oracle = CreateReferenceKernels();
  for (const Set& set : Sets()) {
    const auto kernels = CreateCpuKernels(set.options);
    const double step = 11.0 / 128;  // differences without rounding
    std::vector<double> logits(1000);
    for (int i = 0; i < 1000; ++i) logits[i] = i == 500 ? 3 : 3 - step * i;
    std::vector<Tensor> results;
    for (Kernels* k : {oracle.get(), kernels.get()}) {
      Tensor x = MakeTensor({1, 1000}, DType::kF32, logits, k->allocator());
      Tensor label = Tensor::Of<std::int64_t>({1}, {999}, k->allocator());
      Tensor d = Tensor::Zeros({1, 1000}, DType::kF32, k->allocator());
      Tensor stats = Tensor::Zeros({3}, DType::kF64, k->allocator());
      ASSERT_TRUE(k->SoftmaxCrossEntropy(x, label, -100, stats, d).ok());
      results.push_back(d);
      results.push_back(stats);
    }
    const std::vector<double> want = ValuesOf(results[0]);
    const std::vector<double> got = ValuesOf(results[2]);
    for (int i = 0; i < 1000; ++i) {
      EXPECT_NEAR(got[i], want[i], 4e-7 * std::abs(want[i]) + 1e-37)
          << set.name << ", class " << i;
    }
    EXPECT_TRUE(Near(ValuesOf(results[3]), ValuesOf(results[1]), 1e-7));
  }
}

}  // namespace
}  // namespace troupe::nn

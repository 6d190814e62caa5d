// Runs the op suite on the kernels of a GPU: on the emulation in every build,
// and on a GPU if there is one (ops_gpu_test). Then runs the same cases under
// every schedule of the emulation, with new memory filled with different
// poison, and expects the same bits.

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "tests/base/cuda/emulated/test_device.h"
#include "tests/nn/fronts/golden_fronts.h"
#include "tests/nn/kernels/cuda/test_kernels.h"
#include "tests/nn/ops/op_suite.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

using ::testing::HasSubstr;

bool HasDevice() { return emulated_cuda_test::WhyNoDevice().empty(); }

std::vector<Backend> Backends() {
  if (!HasDevice()) return {};
  return {{"cuda",
           [] { return CreateTestKernels(); },
           {DType::kF32, DType::kBF16, DType::kF16},
           /*has_queues=*/true}};
}

// ScheduleSuite compares what OpSuite does, and more.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpSuite);
// Without a GPU there are no backends.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ElementWiseSuite);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendSuite);

INSTANTIATE_TEST_SUITE_P(Cuda, AgreementSuite,
                         testing::ValuesIn(OpTests(Backends())), OpName);
INSTANTIATE_TEST_SUITE_P(Cuda, ElementWiseSuite,
                         testing::ValuesIn(ElementWiseOpTests(Backends())),
                         OpName);

INSTANTIATE_TEST_SUITE_P(Cuda, BackendSuite, testing::ValuesIn(Backends()),
                         BackendName);

// Ops that are composed of others, such as attention with a mask, have the
// values and gradients of PyTorch.
TEST(CudaFronts, AgreeWithPyTorch) {
  if (!HasDevice()) GTEST_SKIP() << emulated_cuda_test::WhyNoDevice();
  ExpectGoldenFronts(*CreateTestKernels(), DType::kF32);
}

class ScheduleSuite : public testing::TestWithParam<OpTest> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ScheduleSuite);

std::vector<std::uint8_t> BytesOf(const std::vector<Tensor>& tensors) {
  std::vector<std::uint8_t> bytes(1);  // never empty
  for (const Tensor& tensor : tensors) {
    const auto* begin = static_cast<const std::uint8_t*>(tensor.raw());
    bytes.insert(bytes.end(), begin, begin + tensor.bytes());
  }
  return bytes;
}

// Each run has kernels of its own. Those of the first run are called twice, for
// outputs at different addresses.
TEST_P(ScheduleSuite, GivesTheSameBitsInAnyOrderOfThreads) {
  bool again = true;
  EXPECT_EQ(emulated_cuda_test::CompareRuns([&] {
              const auto kernels = GetParam().backend.create();
              const std::vector<Tensor> outputs = RunCase(GetParam(), *kernels);
              if (again) {
                EXPECT_EQ(BytesOf(RunCase(GetParam(), *kernels)),
                          BytesOf(outputs));
              }
              again = false;
              return BytesOf(outputs);
            }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Cuda, ScheduleSuite,
                         testing::ValuesIn(OpTests(Backends())), OpName);

class CudaOpsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasDevice()) GTEST_SKIP() << emulated_cuda_test::WhyNoDevice();
    kernels_ = CreateTestKernels();
  }

  Allocator& memory() { return kernels_->allocator(); }
  Tensor Poisoned(const Shape& shape, DType dtype) {
    return Tensor::Empty(shape, dtype, memory());
  }

  std::unique_ptr<Kernels> kernels_;
};

TEST_F(CudaOpsTest, TheFirstWrongTargetIsNamedAndCountsNothing) {
  const std::int64_t N = 300, C = 10;
  Tensor logits = Tensor::Zeros({N, C}, DType::kF32, memory());
  for (std::int64_t wrong : {std::int64_t{10}, std::int64_t{-1},
                             std::numeric_limits<std::int64_t>::max()}) {
    std::vector<std::int64_t> targets(N, 3);
    targets[77] = targets[290] = wrong;
    targets[78] = -5;
    targets[5] = kIgnoredLabel;
    Tensor labels = Tensor::Of<std::int64_t>({N}, targets, memory());
    Tensor stats = Poisoned({3}, DType::kF64);
    Tensor dlogits = Poisoned({N, C}, DType::kF32);
    const absl::Status status = kernels_->SoftmaxCrossEntropy(
        logits, labels, kIgnoredLabel, stats, dlogits);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("row 77 has target ", wrong)));
    EXPECT_EQ(stats.data<double>()[1], N - 4);
    EXPECT_EQ(ValuesOf(dlogits.Slice(77, 79)), std::vector<double>(2 * C, 0.0));
    EXPECT_EQ(dlogits.data<float>()[79 * C + 3], 0.1f - 1);
  }
}

TEST_F(CudaOpsTest, TheFirstRowOutsideATableIsNamedAndReadsNothing) {
  const std::int64_t R = 700, V = 6, D = 5;
  Tensor table = MakeTensor({V, D}, DType::kBF16,
                            std::vector<double>(V * D, 2.0), memory());
  for (std::int64_t wrong : {std::int64_t{6}, std::int64_t{-1},
                             std::numeric_limits<std::int64_t>::min()}) {
    std::vector<std::int64_t> rows(R, 5);
    rows[600] = wrong;
    rows[650] = 99;
    Tensor indices = Tensor::Of<std::int64_t>({R}, rows, memory());
    Tensor y = Poisoned({R, D}, DType::kBF16);
    const absl::Status status = kernels_->EmbeddingForward(indices, table, y);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("index 600 is ", wrong)));
    EXPECT_EQ(ValuesOf(y.Slice(599, 600)), std::vector<double>(D, 2.0));
    EXPECT_EQ(ValuesOf(y.Slice(600, 601)), std::vector<double>(D, 0.0));
    EXPECT_EQ(ValuesOf(y.Slice(601, 602)), std::vector<double>(D, 2.0));
  }
}

// Backward skips the wrong rows that forward reported.
TEST_F(CudaOpsTest, AGradientOfARowOutsideTheTableGoesNowhere) {
  for (std::int64_t R : {40, 1500}) {  // without lists of lookups and with them
    std::vector<std::int64_t> rows(R, 1);
    rows[3] = 4, rows[5] = -1, rows[7] = 3;
    Tensor indices = Tensor::Of<std::int64_t>({R}, rows, memory());
    Tensor dy = MakeTensor({R, 2}, DType::kF32, std::vector<double>(2 * R, 1.0),
                           memory());
    Tensor dtable = Poisoned({4, 2}, DType::kF32);
    ASSERT_TRUE(
        kernels_->EmbeddingBackward(indices, dy, -1, false, dtable).ok());
    const double ones = static_cast<double>(R) - 3;
    EXPECT_EQ(ValuesOf(dtable),
              (std::vector<double>{0, 0, ones, ones, 0, 0, 1, 1}));
  }
}

// Rows and classes of other ranks are none of the errors.
TEST_F(CudaOpsTest, APieceNamesWhatIsOutsideTheWhole) {
  Tensor piece =
      MakeTensor({4, 2}, DType::kF32, std::vector<double>(8, 2.0), memory());
  Tensor rows = Tensor::Of<std::int64_t>({4}, {0, 5, 7, -1}, memory());
  Tensor y = Poisoned({4, 2}, DType::kF32);
  absl::Status status =
      kernels_->PieceEmbeddingForward(rows, /*first=*/4, /*whole=*/7, piece, y);
  EXPECT_EQ(status.message(),
            "Embedding: index 2 is 7, but the table has 7 rows");
  EXPECT_EQ(ValuesOf(y.Slice(0, 2)), (std::vector<double>{0, 0, 2, 2}));
  EXPECT_EQ(ValuesOf(y.Slice(3, 4)), (std::vector<double>{0, 0}));

  const ClassPiece classes = {/*first=*/4, /*count=*/3, /*classes=*/7};
  Tensor logits = Tensor::Zeros({4, 4}, DType::kF32, memory());
  Tensor targets = Tensor::Of<std::int64_t>({4}, {0, 5, 7, -1}, memory());
  Tensor largest = Tensor::Zeros({4}, DType::kF64, memory());
  Tensor sums = Poisoned({4, kNumPieceSums}, DType::kF64);
  Tensor stats = Poisoned({3}, DType::kF64);
  Tensor dlogits = Poisoned({4, 4}, DType::kF32);
  ASSERT_TRUE(kernels_
                  ->PieceSums(logits, targets, Tensor(), kIgnoredLabel, classes,
                              largest, sums)
                  .ok());
  status = kernels_->PieceCrossEntropy(logits, targets, Tensor(), kIgnoredLabel,
                                       classes, largest, sums, stats, dlogits);
  EXPECT_EQ(status.message(),
            "SoftmaxCrossEntropy: row 2 has target 7, but there are 7 classes");
  EXPECT_EQ(stats.data<double>()[1], 2);
  EXPECT_EQ(ValuesOf(dlogits.Slice(2, 4)), std::vector<double>(8, 0.0));
}

TEST_F(CudaOpsTest, OfSeveralCallsTheFirstErrorStays) {
  const StoragePtr block = *memory().Allocate(sizeof(cuda::DataError));
  cuda::CudaOps state;
  state.allocator = &memory();
  state.error = static_cast<cuda::DataError*>(block->data());
  *state.error = cuda::DataError();
  EmbeddingKernels ops;
  cuda::BindFamily(ops, &state);
  Tensor table = Tensor::Zeros({3, 2}, DType::kF32, memory());
  Tensor y = Poisoned({2, 2}, DType::kF32);
  for (std::int64_t wrong : {7, 8}) {
    Tensor rows = Tensor::Of<std::int64_t>({2}, {0, wrong}, memory());
    ASSERT_TRUE(
        emulated_cuda_test::WaitFor(ops.EmbeddingForward(rows, table, y)).ok());
  }
  EXPECT_EQ(StatusOf(*state.error).message(),
            "Embedding: index 1 is 7, but the table has 3 rows");
  state.error->op = 77;
  EXPECT_EQ(StatusOf(*state.error).code(), absl::StatusCode::kInternal);
}

TEST_F(CudaOpsTest, NaNsAndInfinitiesOfLogitsGoTheirWay) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  const auto oracle_hits = [&](const std::vector<double>& row,
                               std::int64_t target) {
    const std::int64_t C = static_cast<std::int64_t>(row.size());
    Tensor logits = MakeTensor({1, C}, DType::kF32, row, memory());
    Tensor labels = Tensor::Of<std::int64_t>({1}, {target}, memory());
    Tensor stats = Poisoned({3}, DType::kF64);
    Tensor dlogits = Poisoned({1, C}, DType::kF32);
    EXPECT_TRUE(
        kernels_
            ->SoftmaxCrossEntropy(logits, labels, kIgnoredLabel, stats, dlogits)
            .ok());
    std::vector<double> got = ValuesOf(stats);
    got.push_back(dlogits.data<float>()[0]);
    return got;
  };
  // {loss, counted, hits, first gradient}
  EXPECT_EQ(oracle_hits({-inf, 0, -inf, -inf}, 1),
            (std::vector<double>{0, 1, 1, 0}));
  EXPECT_EQ(oracle_hits({-inf, 0, -inf, -inf}, 0),
            (std::vector<double>{inf, 1, 0, -1}));
  for (const std::vector<double>& row : {std::vector<double>{0, nan, 5, 7},
                                         {-inf, -inf, -inf, -inf},
                                         {inf, 0, 1, 2}}) {
    const std::vector<double> got = oracle_hits(row, 1);
    EXPECT_TRUE(std::isnan(got[0]));
    EXPECT_TRUE(std::isnan(got[3]));
    EXPECT_EQ(got[2], std::isnan(row[1]) ? 1 : 0) << "NaN is the largest";
  }
}

TEST_F(CudaOpsTest, IntegersAreFilledAndCopied) {
  for (DType dtype : {DType::kI32, DType::kI64, DType::kU8}) {
    Tensor x = Poisoned({77}, dtype), y = Poisoned({77}, dtype);
    ASSERT_TRUE(kernels_->Fill(200, x).ok());
    ASSERT_TRUE(kernels_->Copy(x, y).ok());
    EXPECT_EQ(ValuesOf(y), std::vector<double>(77, 200.0));
    EXPECT_EQ(kernels_->Fill(0.5, x).code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(kernels_->Fill(1e30, x).code(), absl::StatusCode::kUnimplemented);
  }
}

TEST_F(CudaOpsTest, StatisticsAreAddedAndScaledInF64) {
  const std::vector<double> third(5, 1.0 / 3), tenth(5, 0.1);
  Tensor a = MakeTensor({5}, DType::kF64, third, memory());
  Tensor b = MakeTensor({5}, DType::kF64, tenth, memory());
  ASSERT_TRUE(kernels_->Add(a, b, a).ok());
  EXPECT_EQ(ValuesOf(a), std::vector<double>(5, 1.0 / 3 + 0.1));
  Tensor y = Poisoned({5}, DType::kF64);
  ASSERT_TRUE(kernels_->Scale(a, b, y).ok());
  EXPECT_EQ(ValuesOf(y), std::vector<double>(5, (1.0 / 3 + 0.1) * 0.1));
}

TEST_F(CudaOpsTest, OperandsOfTwoDTypesAreRefusedInWords) {
  Tensor x = Poisoned({4}, DType::kF32), y = Poisoned({4}, DType::kBF16);
  const absl::Status status = kernels_->ReluForward(x, y);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("f32 and bf16"));
}

}  // namespace
}  // namespace troupe::nn

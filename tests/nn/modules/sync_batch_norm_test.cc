// Synchronised batch norm on threads: the ranks' outputs, gradients and running
// statistics equal those of one rank with the whole batch.

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "tests/nn/modules/meeting.h"
#include "tests/nn/modules/one_pass.h"

namespace troupe::nn {
namespace {

BatchNorm::Options Options(DType dtype, bool relu) {
  BatchNorm::Options options;
  options.dtype = dtype;
  options.relu = relu;
  return options;
}

// Linear, batch norm with a ReLU in a block with a reference to it, batch norm.
class NormBlock : public Module {
 public:
  explicit NormBlock(DType dtype)
      : norm_(Add<BatchNorm1d>("norm", 5, Options(dtype, /*relu=*/true))) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return norm_(ctx, x);
  }

 private:
  BatchNorm1d& norm_;
};

std::unique_ptr<Module> MakeModel(DType dtype) {
  auto model = std::make_unique<Sequential>();
  model->Append<Linear>(3, 5, Linear::Options{/*bias=*/true, dtype});
  model->Append<NormBlock>(dtype);
  model->Append<BatchNorm1d>(5, Options(dtype, /*relu=*/false));
  return model;
}

struct Numbers {
  std::function<std::unique_ptr<Kernels>()> create;
  DType dtype;
  double tolerance;
  double bias = 0;  // added to that of the linear layer
  // Reductions of a forward and a backward of a norm.
  int reductions = 2;
};

// Runs shares[r] rows of the batch on rank r, twice; returns the values of the
// second pass.
std::vector<PassValues> RunRanks(const Numbers& numbers,
                                 const std::vector<std::int64_t>& shares,
                                 Meeting& meeting) {
  const std::int64_t all =
      std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  std::vector<PassValues> values(shares.size());
  std::vector<std::thread> ranks;
  std::int64_t begin = 0;
  for (std::size_t r = 0; r < shares.size(); ++r) {
    const std::int64_t end = begin + shares[r];
    ranks.emplace_back([&, r, begin, end] {
      const auto kernels = numbers.create();
      RankOfMeeting rank(&meeting, static_cast<int>(r));
      const AxisCollectives axes[] = {{"dp", &rank}};
      OnePass pass(*kernels, ConvertSyncBatchNorm(MakeModel(numbers.dtype)),
                   numbers.dtype);
      Parameter& bias = *pass.module().Parameters()[1];
      std::vector<double> biases = ValuesOf(bias.value);
      for (double& value : biases) value += numbers.bias;
      bias.value =
          MakeTensor(bias.shape, numbers.dtype, biases, kernels->allocator());
      if (shares.size() > 1) pass.set_collectives(axes);
      for (const std::string name : {"first", "second"}) {
        const Tensor x = pass.Draws("x " + name, {all, 3});
        const Tensor dy = pass.Draws("dy " + name, {all, 5});
        values[r] = pass.Run({x.Slice(begin, end)}, dy.Slice(begin, end));
      }
    });
    begin = end;
  }
  for (std::thread& rank : ranks) rank.join();
  return values;
}

void Append(const std::vector<double>& from, std::vector<double>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

// Concatenates rows, adds up gradients of parameters, expects equal running
// statistics.
PassValues Merged(const std::vector<PassValues>& ranks) {
  PassValues merged = ranks[0];
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    Append(ranks[r].y, merged.y);
    Append(ranks[r].dx[0], merged.dx[0]);
    for (auto& [name, sum] : merged.gradients) {
      const std::vector<double>& added = ranks[r].gradients.at(name);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += added[i];
    }
    EXPECT_EQ(ranks[r].buffers, merged.buffers) << "rank " << r;
  }
  return merged;
}

void ExpectNear(const PassValues& got, const PassValues& want,
                double tolerance) {
  EXPECT_TRUE(Near(got.y, want.y, tolerance));
  EXPECT_TRUE(Near(got.dx[0], want.dx[0], tolerance));
  for (const auto& [name, values] : want.gradients) {
    // The gradient of a bias before a norm is rounding error only.
    if (name == "0.bias") continue;
    EXPECT_TRUE(Near(got.gradients.at(name), values, tolerance)) << name;
  }
  for (const auto& [name, values] : want.buffers) {
    EXPECT_TRUE(Near(got.buffers.at(name), values, tolerance)) << name;
  }
}

TEST(SyncBatchNorm, EqualsOneRankWithTheWholeBatch) {
  const Numbers sets[] = {
      {[] { return CreateReferenceKernels(); }, DType::kF64, 1e-12, /*bias=*/0,
       /*reductions=*/3},
      // Far from 0 the sum of squares has few digits of the variance.
      {[] { return CreateReferenceKernels(); }, DType::kF64, 1e-8,
       /*bias=*/1e6, /*reductions=*/3},
      {[] { return CreateCpuKernels({}); }, DType::kF32, 2e-5}};
  const std::vector<std::int64_t> shares[] = {
      {6, 6}, {11, 1}, {0, 12}, {3, 3, 3, 3}, {5, 1, 0, 6}};
  for (const Numbers& numbers : sets) {
    Meeting alone(1);
    const PassValues want = Merged(RunRanks(numbers, {12}, alone));
    EXPECT_EQ(alone.rounds(), 0);
    for (const auto& share : shares) {
      SCOPED_TRACE(absl::StrCat(share.size(), " ranks, first ", share[0]));
      Meeting meeting(static_cast<int>(share.size()));
      ExpectNear(Merged(RunRanks(numbers, share, meeting)), want,
                 numbers.tolerance);
      EXPECT_EQ(meeting.rounds(), 2 * 2 * numbers.reductions);
    }
  }
}

TEST(SyncBatchNorm, ConversionKeepsModulesAndNames) {
  std::unique_ptr<Module> model = MakeModel(DType::kF32);
  Module* const norm = model->children()[1]->children()[0].get();
  const std::vector<Parameter*> parameters = model->Parameters();
  const std::vector<Buffer*> buffers = model->Buffers();
  model = ConvertSyncBatchNorm(std::move(model));
  EXPECT_EQ(model->children()[1]->children()[0].get(), norm);
  EXPECT_EQ(model->Parameters(), parameters);
  EXPECT_EQ(model->Buffers(), buffers);
  EXPECT_EQ(dynamic_cast<BatchNorm*>(norm)->sync_axis(), "dp");
}

TEST(SyncBatchNorm, AShapeOnlyForwardRecordsTheAxis) {
  SyncBatchNorm norm(3);
  ShapeRecord record;
  ASSERT_TRUE(
      ShapeOnlyForward(norm, {4, 2, 3}, DType::kF32, Device{}, record).ok());
  EXPECT_EQ(record.axes, std::vector<std::string>{"dp"});
}

TEST(SyncBatchNorm, AnEvaluationAsksNobody) {
  const auto kernels = CreateCpuKernels({});
  Meeting meeting(2);
  RankOfMeeting rank(&meeting, 0);
  const AxisCollectives axes[] = {{"dp", &rank}};
  OnePass pass(*kernels, std::make_unique<SyncBatchNorm>(3));
  pass.set_collectives(axes);
  EXPECT_EQ(pass.Evaluate(pass.Draws("x", {1, 3})).size(), 3u);
  EXPECT_EQ(meeting.rounds(), 0);
}

}  // namespace
}  // namespace troupe::nn

// Mutation tests of kernels on the emulated GPU (base/cuda/emulated): some
// schedule finds each planted bug, by other bits, poison or an error, and none
// finds anything in correct code. Each run is a separate process.
//
//   bazel run //tests/nn/kernels/cuda/planted:kernel_bugs_test -- --table
//
// Options --config=tsan add the races that ThreadSanitizer
// reports.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fnv_hash.h"
#include "gtest/gtest.h"
#include "tests/actors/sim/planted/count_seeds.h"
#include "tests/actors/sim/planted/hunt.h"
#include "tests/actors/sim/planted/races.h"
#include "tests/base/cuda/emulated/test_device.h"
#include "tests/nn/kernels/cuda/planted/bug.h"
#include "tests/nn/kernels/cuda/test_kernels.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

// --- The programs: each runs one op and returns a line about its outputs ---

class Program {
 public:
  // Returns a tensor of different numbers. Output() returns uninitialized
  // memory.
  Tensor Input(const Shape& shape) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
      values.push_back(static_cast<double>(i * 7 % 13) / 4 - 1);
    }
    return MakeTensor(shape, DType::kF32, values, memory());
  }
  Tensor Output(const Shape& shape, DType dtype = DType::kF32) {
    return Tensor::Empty(shape, dtype, memory());
  }
  Tensor Rows(std::int64_t count, std::int64_t below) {
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < count; ++i) rows.push_back(i * 5 % below);
    return Tensor::Of<std::int64_t>({count}, rows, memory());
  }
  std::string Outcome(const absl::Status& status,
                      const std::vector<Tensor>& outputs) {
    if (!status.ok()) return absl::StrCat("error: ", status.ToString());
    base::FnvHash hash;
    for (const Tensor& output : outputs) {
      hash.AddBytes(output.raw(), output.bytes());
    }
    return absl::StrCat(absl::Hex(hash.value()));
  }

  Kernels& kernels() { return *kernels_; }

 private:
  Allocator& memory() { return kernels_->allocator(); }
  const std::unique_ptr<Kernels> kernels_ = CreateTestKernels();
};

std::string SquaredErrors() {
  Program p;
  Tensor stats = p.Output({3}, DType::kF64), gradient = p.Output({77, 9});
  const absl::Status status =
      p.kernels().PairLoss({PairLossFunction::kSquaredError}, p.Input({77, 9}),
                           p.Input({77, 9}), stats, gradient);
  return p.Outcome(status, {stats, gradient});
}

// One of the targets is ignored, so its row of the gradient is zeros.
std::string CrossEntropy() {
  Program p;
  Tensor targets = p.Rows(5, 3);
  targets.data<std::int64_t>()[2] = -100;
  Tensor stats = p.Output({3}, DType::kF64), gradient = p.Output({5, 10});
  const absl::Status status = p.kernels().SoftmaxCrossEntropy(
      p.Input({5, 10}), targets, /*ignore_index=*/-100, stats, gradient);
  return p.Outcome(status, {stats, gradient});
}

// Has more lookups than a block lists at a time.
std::string EmbeddingGradient() {
  Program p;
  Tensor table = p.Output({40, 3});
  const absl::Status status = p.kernels().EmbeddingBackward(
      p.Rows(1500, 40), p.Input({1500, 3}), /*padding_row=*/-1,
      /*accumulate=*/false, table);
  return p.Outcome(status, {table});
}

std::string Transpose() {
  Program p;
  Tensor y = p.Output({2, 3, 5, 7});
  const absl::Status status = p.kernels().NhwcToNchw(p.Input({2, 5, 7, 3}), y);
  return p.Outcome(status, {y});
}

// The bias gradient is at the start of an arena; the rest must not change.
std::string BiasGradient() {
  Program p;
  Tensor dw = p.Output({6, 4});
  Tensor arena = p.Input({40});
  Tensor db = arena.FlatView(0, {6});
  const absl::Status status = p.kernels().LinearBackwardWeight(
      p.Input({20, 4}), p.Input({20, 6}), /*accumulate=*/false, dw, db);
  return p.Outcome(status, {dw, arena});
}

// --- The bugs ---

struct Case {
  Bug bug;
  const char* name;
  const char* source;
  std::string (*outcome)();
};

#define TROUPE_CASE(bug, source, outcome) \
  { Bug::k##bug, #bug, "nn/kernels/cuda/" source, outcome }

constexpr Case kCases[] = {
    TROUPE_CASE(NoBarrierAfterWrite, "reduce.h", SquaredErrors),
    TROUPE_CASE(WrongMask, "reduce.h", SquaredErrors),
    TROUPE_CASE(NoBarrierBeforeReuse, "embedding.cu", EmbeddingGradient),
    TROUPE_CASE(TileReadTooEarly, "transpose.h", Transpose),
    TROUPE_CASE(RowsReadTooEarly, "matrix_kernels.cu", BiasGradient),
    TROUPE_CASE(TailBeyondTheEnd, "matrix_kernels.cu", BiasGradient),
    TROUPE_CASE(RowNotWritten, "softmax_row.h", CrossEntropy),
};

std::string Run(const Case& c, Bug bug, int schedule) {
  PlantedBug<Bug>() = bug;
  emulated_cuda_test::BeginRun(schedule);
  return c.outcome();
}

// Returns the outcome of a run. The executor reports an error by an exception.
std::string Outcome(const Case& c, Bug bug, int schedule) {
  try {
    return Run(c, bug, schedule);
  } catch (const std::exception& error) {
    return absl::StrCat("report: ", error.what());
  }
}

std::vector<std::uint64_t> Schedules() {
  std::vector<std::uint64_t> all;
  for (int i = 0; i < emulated_cuda_test::RunCount(); ++i) {
    all.push_back(static_cast<std::uint64_t>(i));
  }
  return all;
}

Tally Count(const Case& c, Bug bug) {
  const Trial right = TryInChild([&] { return Outcome(c, Bug::kNone, 0); });
  return CountSeeds(Schedules(), right, [&](std::uint64_t schedule) {
    return Outcome(c, bug, static_cast<int>(schedule));
  });
}

// Returns the reports of ThreadSanitizer from all schedules.
std::string RacesOf(const Case& c, Bug bug) {
  return InChild([&] {
    for (const std::uint64_t schedule : Schedules()) {
      Outcome(c, bug, static_cast<int>(schedule));
    }
  });
}

class KernelBugsTest : public testing::TestWithParam<Case> {};

TEST_P(KernelBugsTest, IsFoundByASchedule) {
  const Case& c = GetParam();
  const Tally tally = Count(c, c.bug);
  EXPECT_GT(tally.found(), 0);
  std::printf("%s: %s\n%s\n", c.name, tally.ToString().c_str(),
              tally.last.c_str());
}

// Runs the program of each bug without the bug.
TEST_P(KernelBugsTest, IsNotSeenInRightCode) {
  const Case& c = GetParam();
  const Tally tally = Count(c, Bug::kNone);
  EXPECT_EQ(tally.found(), 0) << tally.last;
}

INSTANTIATE_TEST_SUITE_P(Bugs, KernelBugsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(KernelBugsTest, EachHasACase) { ExpectACaseForEach<Bug>(kCases); }

void PrintTable() {
  std::printf("| bug | in | %s |\n| --- | --- | --- |\n",
              kUnderTsan ? "ThreadSanitizer names" : "found by schedules");
  for (const Case& c : kCases) {
    const std::string found =
        kUnderTsan ? NamedRace(RacesOf(c, c.bug)) : Count(c, c.bug).ToString();
    std::printf("| %s | `%s` | %s |\n", c.name, c.source, found.c_str());
  }
}

}  // namespace
}  // namespace troupe::nn

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--table") == 0) {
    troupe::nn::PrintTable();
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

// Runs a model on ranks along "tp", on threads, and joins what they compute:
// for tests that compare with the whole model on one rank.
//
//   const RankResult want = RunWhole(c, kCpuF32);
//   Meeting meeting(/*ranks=*/2);
//   ExpectNear(RunRanks(c, kCpuF32, meeting), want, kCpuF32.tolerance);

#ifndef TESTS_NN_MODULES_CUT_MODEL_H_
#define TESTS_NN_MODULES_CUT_MODEL_H_

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nn/modules/localise.h"
#include "nn/modules/parameter_dtype.h"
#include "tests/nn/modules/kernel_sets.h"
#include "tests/nn/modules/meeting.h"
#include "tests/nn/modules/one_pass.h"

namespace troupe::nn {

using MakeModule = std::function<std::unique_ptr<Module>()>;

// A module, and the shapes of its input and output. Tokens are numbers below
// `tokens`; 0: the input is floating.
struct CutModel {
  MakeModule make;
  Shape x, y;
  std::int64_t tokens = 0;
  bool shares_tokens = false;  // among the ranks
  int blocks = 1;              // AxisPlace::blocks
};

// Results of one rank, or of all pieces together.
struct RankResult {
  PassValues values;
  std::vector<double> evaluated;
  // The elements of each parameter that the rank has, by name.
  std::map<std::string, std::vector<ShardRange>> ranges;
  std::set<std::string> in_parts;             // parameters whose gradients are
  std::map<std::string, std::int64_t> elems;  // sizes of whole parameters
};

inline Tensor InputOf(const CutModel& c, OnePass& pass, Kernels& kernels) {
  if (c.tokens == 0) return pass.Draws("x", c.x);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < c.x.numel(); ++i) {
    numbers.push_back(static_cast<double>((7 * i + i / 3) % c.tokens));
  }
  return MakeTensor(c.x, DType::kI64, numbers, kernels.allocator());
}

// Changes a rank's parameters or input before its passes.
using Change = std::function<void(OnePass&, const Tensor& x, int coord)>;

inline RankResult RunRank(const CutModel& c, const KernelSet& set, int coord,
                          Meeting& meeting, const Change& change) {
  const auto kernels = set.create();
  std::unique_ptr<Module> model = c.make();
  SetParameterDType(*model, set.dtype);
  EXPECT_EQ(LocaliseModel(*model, {{"tp", coord, meeting.size(),
                                    c.shares_tokens, c.blocks}}),
            absl::OkStatus());
  OnePass pass(*kernels, std::move(model), set.dtype, /*scale=*/0.3);
  RankOfMeeting rank(&meeting, coord);
  const AxisCollectives axes[] = {{"tp", &rank}};
  if (meeting.size() > 1) pass.set_collectives(axes);
  pass.set_random({/*seed=*/5, /*step=*/6, /*sample=*/7});
  const Tensor x = InputOf(c, pass, *kernels);
  if (change) change(pass, x, coord);
  RankResult result;
  result.values = pass.Run({x}, pass.Draws("dy", c.y));
  result.evaluated = pass.Evaluate(x);
  for (const Parameter* p : pass.module().Parameters()) {
    result.ranges[p->name] = RangesOf(*p);
    if (p->sharding.partial_grad) result.in_parts.insert(p->name);
    result.elems[p->name] = p->global_shape.numel();
  }
  return result;
}

// Joins the pieces of gradients, adds up their parts, and expects that ranks
// agree on the rest.
inline RankResult Joined(const std::vector<RankResult>& ranks) {
  RankResult joined = ranks[0];
  for (const RankResult& rank : ranks) {
    EXPECT_EQ(rank.values.y, joined.values.y);
    EXPECT_EQ(rank.values.dx, joined.values.dx);
    EXPECT_EQ(rank.evaluated, joined.evaluated);
  }
  for (auto& [name, whole] : joined.values.gradients) {
    const auto elems = static_cast<std::size_t>(joined.elems.at(name));
    const bool is_cut = whole.size() < elems;
    const bool in_parts = joined.in_parts.count(name) > 0;
    if (is_cut || in_parts) whole.assign(elems, 0.0);
    for (const RankResult& rank : ranks) {
      const std::vector<double>& piece = rank.values.gradients.at(name);
      for (std::size_t i = 0; in_parts && i < elems; ++i) whole[i] += piece[i];
      if (in_parts) continue;
      if (!is_cut) {
        EXPECT_EQ(piece, whole) << name;
      }
      for (const ShardRange& range : rank.ranges.at(name)) {
        std::copy_n(piece.begin() + range.local, range.count,
                    whole.begin() + range.global);
      }
    }
  }
  return joined;
}

inline RankResult RunRanks(const CutModel& c, const KernelSet& set,
                           Meeting& meeting, const Change& change = {}) {
  std::vector<RankResult> results(meeting.size());
  std::vector<std::thread> ranks;
  for (int coord = 0; coord < meeting.size(); ++coord) {
    ranks.emplace_back([&, coord] {
      results[coord] = RunRank(c, set, coord, meeting, change);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return Joined(results);
}

inline RankResult RunWhole(const CutModel& c, const KernelSet& set) {
  Meeting alone(1);
  RankResult whole = RunRanks(c, set, alone);
  EXPECT_EQ(alone.rounds(), 0);
  return whole;
}

inline void ExpectNear(const RankResult& got, const RankResult& want,
                       double tolerance) {
  EXPECT_TRUE(Near(got.values.y, want.values.y, tolerance));
  EXPECT_TRUE(Near(got.evaluated, want.evaluated, tolerance));
  ASSERT_EQ(got.values.dx.size(), want.values.dx.size());
  for (std::size_t i = 0; i < want.values.dx.size(); ++i) {
    EXPECT_TRUE(Near(got.values.dx[i], want.values.dx[i], tolerance));
  }
  for (const auto& [name, values] : want.values.gradients) {
    EXPECT_TRUE(Near(got.values.gradients.at(name), values, tolerance)) << name;
  }
}

}  // namespace troupe::nn

#endif  // TESTS_NN_MODULES_CUT_MODEL_H_

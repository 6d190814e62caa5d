// Layers that are cut along "tp", on threads: the pieces together have the
// output, gradients and drops of the whole.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/models/gpt2.h"
#include "nn/models/vit.h"
#include "nn/modules/attention.h"
#include "nn/modules/dropout.h"
#include "nn/modules/linear.h"
#include "nn/modules/localise.h"
#include "nn/modules/parameter_dtype.h"
#include "nn/ops/activation.h"
#include "tests/nn/modules/kernel_sets.h"
#include "tests/nn/modules/meeting.h"
#include "tests/nn/modules/one_pass.h"

namespace troupe::nn {
namespace {

using MakeModule = std::function<std::unique_ptr<Module>()>;

// A module, and the shapes of its input and output. Tokens are numbers below
// `tokens`; 0: the input is floating.
struct CutModel {
  MakeModule make;
  Shape x, y;
  std::int64_t tokens = 0;
};

// Results of one rank, or of all pieces together.
struct RankResult {
  PassValues values;
  std::vector<double> evaluated;
  // The elements of each parameter that the rank has, by name.
  std::map<std::string, std::vector<ShardRange>> ranges;
  std::map<std::string, std::int64_t> elems;  // sizes of whole parameters
};

Tensor InputOf(const CutModel& c, OnePass& pass, Kernels& kernels) {
  if (c.tokens == 0) return pass.Draws("x", c.x);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < c.x.numel(); ++i) {
    numbers.push_back(static_cast<double>((7 * i + i / 3) % c.tokens));
  }
  return MakeTensor(c.x, DType::kI64, numbers, kernels.allocator());
}

// Changes a rank's parameters or input before its passes.
using Change = std::function<void(OnePass&, const Tensor& x, int coord)>;

RankResult RunRank(const CutModel& c, const KernelSet& set, int coord,
                   Meeting& meeting, const Change& change) {
  const auto kernels = set.create();
  std::unique_ptr<Module> model = c.make();
  SetParameterDType(*model, set.dtype);
  EXPECT_EQ(LocaliseModel(*model, {{"tp", coord, meeting.size()}}),
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
    result.elems[p->name] = p->global_shape.numel();
  }
  return result;
}

// Joins the pieces of gradients, and expects that ranks agree on the rest.
RankResult Joined(const std::vector<RankResult>& ranks) {
  RankResult joined = ranks[0];
  for (const RankResult& rank : ranks) {
    EXPECT_EQ(rank.values.y, joined.values.y);
    EXPECT_EQ(rank.values.dx, joined.values.dx);
    EXPECT_EQ(rank.evaluated, joined.evaluated);
  }
  for (auto& [name, whole] : joined.values.gradients) {
    const auto elems = static_cast<std::size_t>(joined.elems.at(name));
    const bool is_cut = whole.size() < elems;
    if (is_cut) whole.assign(elems, 0.0);
    for (const RankResult& rank : ranks) {
      const std::vector<double>& piece = rank.values.gradients.at(name);
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

RankResult RunRanks(const CutModel& c, const KernelSet& set, Meeting& meeting,
                    const Change& change = {}) {
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

RankResult RunWhole(const CutModel& c, const KernelSet& set) {
  Meeting alone(1);
  RankResult whole = RunRanks(c, set, alone);
  EXPECT_EQ(alone.rounds(), 0);
  return whole;
}

void ExpectNear(const RankResult& got, const RankResult& want,
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

// fc2(dropout(gelu(fc1(x)))), whose hidden vector is cut.
class Mlp : public Module {
 public:
  Mlp(std::int64_t width, std::int64_t hidden, double dropout)
      : fc1_(Add<Linear>("fc1", width, hidden)),
        dropout_(Add<Dropout>("dropout", dropout)),
        fc2_(Add<Linear>("fc2", hidden, width)) {
    fc1_.set_parallel(Linear::kColumn);
    dropout_.set_parallel(true);
    fc2_.set_parallel(Linear::kRow);
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return fc2_(ctx, dropout_(ctx, ops::Gelu(ctx, fc1_(ctx, x))));
  }

 private:
  Linear& fc1_;
  Dropout& dropout_;
  Linear& fc2_;
};

CutModel MlpCase(std::int64_t rows, double dropout = 0.3) {
  return {[dropout] { return std::make_unique<Mlp>(32, 64, dropout); },
          {rows, 3, 32},
          {rows, 3, 32}};
}

TEST(TensorParallel, AnMlpEqualsTheWhole) {
  for (const KernelSet& set : kAllSets) {
    const RankResult want = RunWhole(MlpCase(4), set);
    for (const int tp : {2, 4}) {
      SCOPED_TRACE(absl::StrCat("tp = ", tp, ", ", DTypeName(set.dtype)));
      Meeting meeting(tp);
      const RankResult got = RunRanks(MlpCase(4), set, meeting);
      ExpectNear(got, want, set.tolerance);
      // One in forward, one in backward, one in the evaluation.
      EXPECT_EQ(meeting.rounds(), 3);
      // Column outputs, drops and all gradients of parameters are sums over
      // samples that one rank adds up: they are exact.
      EXPECT_EQ(got.values.gradients, want.values.gradients);
    }
  }
}

TEST(TensorParallel, AnEmptyBatchAsksNobody) {
  Meeting meeting(2);
  const RankResult got = RunRanks(MlpCase(0), kCpuF32, meeting);
  EXPECT_EQ(meeting.rounds(), 0);
  EXPECT_EQ(got.values.gradients,
            RunWhole(MlpCase(0), kCpuF32).values.gradients);
}

CutModel AttentionCase(std::int64_t kv_heads) {
  return {[kv_heads] {
            CausalSelfAttention::Options options;
            options.dropout = 0.2;
            options.attention_dropout = 0.3;
            options.kv_heads = kv_heads;
            options.rotary.emplace();
            return std::make_unique<CausalSelfAttention>(32, 8, options);
          },
          {2, 9, 32},
          {2, 9, 32}};
}

TEST(TensorParallel, AttentionByHeadsEqualsTheWhole) {
  for (const KernelSet& set : kAllSets) {
    for (const std::int64_t kv_heads : {8, 4}) {
      const CutModel c = AttentionCase(kv_heads);
      const RankResult want = RunWhole(c, set);
      for (const int tp : {2, 4}) {
        SCOPED_TRACE(absl::StrCat("tp = ", tp, ", ", kv_heads, " of keys"));
        Meeting meeting(tp);
        ExpectNear(RunRanks(c, set, meeting), want, set.tolerance);
      }
    }
  }
}

// Attention of x to a function of it, under a bias that is a parameter, if
// `bias` has axes.
class Attend : public Module {
 public:
  explicit Attend(const Shape& bias)
      : attention_(Add<MultiheadAttention>("attention", 32, 8, Dropped())) {
    if (bias.rank() == 0) return;
    bias_ = &Declare("bias", bias, Initializer::Constant(0));
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    const Tensor memory = ops::Gelu(ctx, x);
    if (bias_ == nullptr) {
      const TensorList ys = attention_.CallMany(ctx, {x, memory});
      return ys.empty() ? Tensor() : ys[0];
    }
    MultiheadAttention::Masks masks;
    masks.attn_bias = ctx.Use(*bias_);
    return attention_.CallMasked(ctx, {x, memory}, masks);
  }

 private:
  static MultiheadAttention::Options Dropped() {
    MultiheadAttention::Options options;
    options.dropout = 0.3;
    options.rotary.emplace();
    return options;
  }

  MultiheadAttention& attention_;
  Parameter* bias_ = nullptr;
};

TEST(TensorParallel, MultiheadAttentionEqualsTheWhole) {
  constexpr std::int64_t kSamples = 2, kTokens = 5;
  const MakeModule makes[] = {
      [] { return std::make_unique<MultiheadAttention>(32, 8); },
      [] { return std::make_unique<Attend>(Shape{}); },
      [] {
        return std::make_unique<Attend>(Shape{kTokens, kTokens});
      },
      [] {
        return std::make_unique<Attend>(Shape{kSamples * 8, kTokens, kTokens});
      }};
  const Shape shape = {kSamples, kTokens, 32};
  for (const MakeModule& make : makes) {
    for (const KernelSet& set : {kReferenceF64, kCpuF32}) {
      const CutModel c = {make, shape, shape};
      const RankResult want = RunWhole(c, set);
      for (const int tp : {2, 4}) {
        SCOPED_TRACE(absl::StrCat("tp = ", tp, ", form ", &make - makes));
        Meeting meeting(tp);
        ExpectNear(RunRanks(c, set, meeting), want, set.tolerance);
      }
    }
  }
}

CutModel GptCase(bool recomputes) {
  return {[recomputes] {
            Gpt2Options options;
            options.layers = 2;
            options.heads = 4;
            options.width = 16;
            options.context = 6;
            options.vocab_size = 11;
            options.dropout = 0.1;
            options.attention_dropout = 0.2;
            std::unique_ptr<Sequential> model = *MakeGpt2(options);
            for (const auto& child : model->children()) {
              if (child->name() == "lm_head") child->set_recomputes(recomputes);
              if (child->name() != "h") continue;
              for (const auto& block : child->children()) {
                block->set_recomputes(recomputes);
              }
            }
            return model;
          },
          {3, 6},
          {3, 6, 11},
          /*tokens=*/11};
}

CutModel VitCase() {
  return {[] {
            VitOptions options;
            options.depth = 2;
            options.heads = 4;
            options.width = 16;
            options.image_size = 8;
            options.patch_size = 4;
            options.num_classes = 5;
            return *MakeVit(options);
          },
          {3, 8, 8, 3},
          {3, 5}};
}

// Many layers behind each other, each of which rounds.
constexpr double kModelTolerance = 10;

TEST(TensorParallel, WholeModelsEqualOneRank) {
  for (const CutModel& c : {GptCase(/*recomputes=*/false), VitCase()}) {
    for (const KernelSet& set : {kReferenceF64, kCpuF32}) {
      const RankResult want = RunWhole(c, set);
      for (const int tp : {2, 4}) {
        SCOPED_TRACE(absl::StrCat("tp = ", tp, ", ", c.tokens, " tokens"));
        Meeting meeting(tp);
        const RankResult got = RunRanks(c, set, meeting);
        ExpectNear(got, want, kModelTolerance * set.tolerance);
        // Two blocks: 2 in forward, 2 in backward, 2 in the evaluation. The
        // vocabulary: 1 for the tokens and 1 for the logits in both forwards,
        // 1 in backward.
        const int of_vocabulary = c.tokens > 0 ? 5 : 0;
        EXPECT_EQ(meeting.rounds(), 2 * (2 + 2 + 2) + of_vocabulary);
      }
    }
  }
}

// Backward runs each block's forward again, with its two sums, and the head's,
// with the gather of its logits.
TEST(TensorParallel, RecomputationAddsUpAgainToTheSameBits) {
  Meeting kept(2), again(2);
  const RankResult want = RunRanks(GptCase(false), kCpuF32, kept);
  const RankResult got = RunRanks(GptCase(true), kCpuF32, again);
  EXPECT_EQ(got.values.y, want.values.y);
  EXPECT_EQ(got.values.gradients, want.values.gradients);
  EXPECT_EQ(again.rounds(), kept.rounds() + 2 * 2 + 1);
}

// Derivatives of sum(dy * y), on two ranks.
TEST(TensorParallel, GradientsAreThoseOfDifferences) {
  constexpr double kStep = 1e-5;
  const CutModel c = MlpCase(2, /*dropout=*/0);
  const auto run = [&](const Change& change) {
    Meeting meeting(2);
    return RunRanks(c, kReferenceF64, meeting, change);
  };
  const std::vector<double> dy = NormalDraws("dy", c.y.numel());
  // Moves element 3 of the last rank that has a piece of `name`, or of all
  // copies; of x, if there is no name.
  const auto sum = [&](const std::string& name, double moved) {
    const std::vector<double> y =
        run([&](OnePass& pass, const Tensor& x, int coord) {
          if (name.empty()) x.data<double>()[3] += moved;
          for (Parameter* p : pass.module().Parameters()) {
            if (p->name != name) continue;
            if (p->sharding.is_split() && coord == 0) continue;
            p->value.data<double>()[3] += moved;
          }
        }).evaluated;
    double total = 0;
    for (std::size_t i = 0; i < y.size(); ++i) total += dy[i] * y[i];
    return total;
  };
  const auto derivative = [&](const std::string& name) {
    return (sum(name, kStep) - sum(name, -kStep)) / (2 * kStep);
  };
  const PassValues got = run({}).values;
  EXPECT_NEAR(got.dx[0][3], derivative(""), 1e-7);
  // Element 3 of the second half of fc1's rows, and of fc2's columns.
  EXPECT_NEAR(got.gradients.at("fc1.weight")[32 * 32 + 3],
              derivative("fc1.weight"), 1e-7);
  EXPECT_NEAR(got.gradients.at("fc1.bias")[32 + 3], derivative("fc1.bias"),
              1e-7);
  EXPECT_NEAR(got.gradients.at("fc2.weight")[32 + 3], derivative("fc2.weight"),
              1e-7);
  EXPECT_NEAR(got.gradients.at("fc2.bias")[3], derivative("fc2.bias"), 1e-7);
}

}  // namespace
}  // namespace troupe::nn

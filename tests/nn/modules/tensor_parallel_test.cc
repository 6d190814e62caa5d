// Layers that are cut along "tp", on threads: the pieces together have the
// output, gradients and drops of the whole.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/models/gpt2.h"
#include "nn/models/vit.h"
#include "nn/modules/attention.h"
#include "nn/modules/dropout.h"
#include "nn/modules/linear.h"
#include "nn/modules/norm.h"
#include "nn/modules/sequential.h"
#include "nn/modules/tokens.h"
#include "nn/ops/activation.h"
#include "nn/ops/add.h"
#include "tests/nn/modules/cut_model.h"
#include "tests/nn/modules/kernel_sets.h"

namespace troupe::nn {
namespace {

// fc2(dropout(gelu(fc1(x)))), whose hidden vector is cut.
class Mlp : public Module {
 public:
  Mlp(std::int64_t width, std::int64_t hidden, double dropout)
      : fc1_(Add<Linear>("fc1", width, hidden)),
        dropout_(Add<Dropout>("dropout", dropout)),
        fc2_(Add<Linear>("fc2", hidden, width)) {
    fc1_.set_parallel(Linear::kColumn);
    dropout_.set_parallel(Dropout::kFeatures);
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

CutModel GptCase(bool recomputes, std::int64_t tokens = 6) {
  return {[recomputes, tokens] {
            Gpt2Options options;
            options.layers = 2;
            options.heads = 4;
            options.width = 16;
            options.context = tokens;
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
          {3, tokens},
          {3, tokens, 11},
          /*tokens=*/11};
}

CutModel VitCase(std::int64_t image_size = 8) {
  return {[image_size] {
            VitOptions options;
            options.depth = 2;
            options.heads = 4;
            options.width = 16;
            options.image_size = image_size;
            options.patch_size = 4;
            options.num_classes = 5;
            return *MakeVit(options);
          },
          {3, image_size, image_size, 3},
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

CutModel InBlocks(CutModel c, int blocks) {
  c.blocks = blocks;
  return c;
}

void ExpectBits(const RankResult& got, const RankResult& want) {
  EXPECT_EQ(got.values.y, want.values.y);
  EXPECT_EQ(got.evaluated, want.evaluated);
  EXPECT_EQ(got.values.dx, want.values.dx);
  EXPECT_EQ(got.values.gradients, want.values.gradients);
}

// A sum of two parts is the same in any order; jobs add up more of them
// (tests/actors/sim/depth_blocks_test.cc).
TEST(TensorParallel, InBlocksTwoRanksHaveTheBitsOfOne) {
  // Weights whose gradients of inputs oneDNN computes at tp = 1, and whose
  // forward transposes other operands on two ranks; sums of several chains.
  const CutModel wide = {[] { return std::make_unique<Mlp>(600, 1800, 0.3); },
                         {6, 3, 600},
                         {6, 3, 600}};
  const CutModel cross = {
      [] { return std::make_unique<Attend>(Shape{}); }, {2, 5, 32}, {2, 5, 32}};
  const CutModel self = {
      [] { return std::make_unique<MultiheadAttention>(32, 8); },
      {2, 5, 32},
      {2, 5, 32}};
  const CutModel cases[] = {
      wide,           cross,         self,     AttentionCase(4),
      GptCase(false), GptCase(true), VitCase()};
  for (const CutModel& c : cases) {
    bool differs = false;
    const RankResult one = RunWhole(c, kCpuF32);
    for (const int blocks : {2, 4}) {
      SCOPED_TRACE(absl::StrCat("model ", &c - cases, ", ", blocks));
      const RankResult want = RunWhole(InBlocks(c, blocks), kCpuF32);
      ExpectNear(want, one, kModelTolerance * kCpuF32.tolerance);
      Meeting meeting(2);
      ExpectBits(RunRanks(InBlocks(c, blocks), kCpuF32, meeting), want);
      Meeting plain(2);
      differs |= RunRanks(c, kCpuF32, plain).values.y != one.values.y;
    }
    EXPECT_TRUE(differs) << "the bits are those of one rank in any case";
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

CutModel SharingTokens(CutModel c) {
  c.shares_tokens = true;
  return c;
}

// Each row layer, and the table, have a reduce-scatter in forward and a gather
// in backward; each column layer a gather in forward and backward, and a
// reduce-scatter; and the logits of the GPT are gathered. ViT's class token is
// gathered in forward; its images of 12 x 12 have 1 + 9 tokens.
TEST(TensorParallel, RanksThatShareTokensEqualOneRank) {
  struct Case {
    CutModel model;
    int tp, rounds;
  };
  for (const Case& c :
       {Case{GptCase(false), 2, 2 * (3 + 2 * 4) + 3 + 2 * 6},
        Case{GptCase(true), 2, 2 * (3 + 2 * 4) + 3 + 2 * 6 + 2 + 2 * 4},
        Case{GptCase(false, /*tokens=*/4), 4, 2 * (3 + 2 * 4) + 3 + 2 * 6},
        Case{VitCase(/*image_size=*/12), 2, 2 * (1 + 2 * 4) + 1 + 2 * 6}}) {
    for (const KernelSet& set : {kReferenceF64, kCpuF32}) {
      SCOPED_TRACE(absl::StrCat("tp = ", c.tp, ", ", c.model.tokens));
      Meeting meeting(c.tp);
      const RankResult got = RunRanks(SharingTokens(c.model), set, meeting);
      ExpectNear(got, RunWhole(c.model, set), kModelTolerance * set.tolerance);
      EXPECT_EQ(meeting.rounds(), c.rounds);
    }
  }
}

// y = x + between(norm(x)), between the ends of a part that shares tokens.
CutModel BetweenEnds(const MakeModule& make) {
  class Block : public Module {
   public:
    explicit Block(std::unique_ptr<Module> between)
        : norm_(Add<RMSNorm>("norm", 32)),
          between_(AddChild("between", std::move(between))),
          dropout_(Add<Dropout>("dropout", 0.4)) {
      norm_.set_parallel(true);
      dropout_.set_parallel(Dropout::kTokens);
    }
    Tensor Forward(Context& ctx, const Tensor& x) override {
      return ops::Add(ctx, x, dropout_(ctx, between_(ctx, norm_(ctx, x))));
    }

   private:
    RMSNorm& norm_;
    Module& between_;
    Dropout& dropout_;
  };
  return {[make] {
            auto model = std::make_unique<Sequential>();
            model->Append<Linear>(32, 32);
            model->Append<TakeTokens>();
            model->Append<Block>(make());
            model->Append<GatherTokens>();
            model->Append<Linear>(32, 32);
            model->set_shares_tokens();
            return model;
          },
          {2, 4, 32},
          {2, 4, 32}};
}

TEST(TensorParallel, ModelsOfOnesOwnShareTokensBetweenTheirEnds) {
  const MakeModule makes[] = {
      [] { return std::make_unique<Mlp>(32, 64, /*dropout=*/0.3); },
      [] { return std::make_unique<MultiheadAttention>(32, 8); },
      [] {
        return std::make_unique<Attend>(Shape{4, 4});
      }};
  for (const MakeModule& make : makes) {
    const CutModel c = BetweenEnds(make);
    for (const int tp : {2, 4}) {
      SCOPED_TRACE(absl::StrCat("tp = ", tp, ", model ", &make - makes));
      Meeting meeting(tp);
      ExpectNear(RunRanks(SharingTokens(c), kReferenceF64, meeting),
                 RunWhole(c, kReferenceF64), kReferenceF64.tolerance);
    }
  }
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

// A rank's part of a model: which parameters are pieces, and errors.

#include "nn/modules/localise.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/models/gpt2.h"
#include "nn/modules/attention.h"
#include "nn/modules/embedding.h"
#include "nn/modules/linear.h"
#include "nn/modules/norm.h"
#include "nn/modules/sequential.h"

namespace troupe::nn {
namespace {

std::vector<AxisPlace> Tp(int coord, int size) {
  return {{"dp", 0, 3}, {"tp", coord, size}};
}

std::unique_ptr<Sequential> SmallGpt(std::int64_t heads = 4) {
  Gpt2Options options;
  options.layers = 1;
  options.heads = heads;
  options.width = 4 * heads;
  options.context = 6;
  options.vocab_size = 11;
  return *MakeGpt2(options);
}

// Returns one line for each parameter that is cut: name, piece of whole.
std::string Pieces(Module& model) {
  std::string text;
  for (const Parameter* p : model.Parameters()) {
    if (!p->sharding.is_split()) {
      EXPECT_EQ(p->shape, p->global_shape) << p->name;
      continue;
    }
    absl::StrAppend(&text, p->name, " ", p->shape.ToString(), " of ",
                    p->global_shape.ToString(), "\n");
  }
  return text;
}

TEST(Localise, CutsHeadsTheMlpAndTheVocabularyOfGpt2) {
  const auto model = SmallGpt();
  const Device device;
  ShapeRecord whole, part;
  ASSERT_TRUE(
      ShapeOnlyForward(*model, {2, 6}, DType::kI64, device, whole).ok());
  EXPECT_TRUE(whole.axes.empty());
  ASSERT_TRUE(LocaliseModel(*model, Tp(1, 2)).ok());
  EXPECT_EQ(Pieces(*model),
            "wte.weight [6, 16] of [11, 16]\n"
            "h.0.attn.c_attn.weight [24, 16] of [48, 16]\n"
            "h.0.attn.c_attn.bias [24] of [48]\n"
            "h.0.attn.c_proj.weight [16, 8] of [16, 16]\n"
            "h.0.mlp.c_fc.weight [32, 16] of [64, 16]\n"
            "h.0.mlp.c_fc.bias [32] of [64]\n"
            "h.0.mlp.c_proj.weight [16, 32] of [16, 64]\n");
  const absl::StatusOr<Tensor> y =
      ShapeOnlyForward(*model, {2, 6}, DType::kI64, device, part);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape(), (Shape{2, 6, 11}));
  EXPECT_EQ(part.axes, std::vector<std::string>{"tp"});
  EXPECT_LT(part.flops(), whole.flops());
}

TEST(Localise, OneRankAlongTheAxisChangesNothing) {
  const auto model = SmallGpt();
  ASSERT_TRUE(LocaliseModel(*model, Tp(0, 1)).ok());
  ASSERT_TRUE(LocaliseModel(*model, {}).ok());
  EXPECT_EQ(Pieces(*model), "");
}

std::string RangesText(const Parameter& parameter,
                       absl::Span<const AxisPlace> places) {
  std::string text;
  for (const ShardRange& r : RangesOf(parameter, places)) {
    absl::StrAppend(&text, r.global, ":", r.local, ":", r.count, " ");
  }
  return text;
}

// 7 rows of 3 among 4 ranks: pieces of 2 rows, of which the last has one.
TEST(Localise, PiecesOfAVocabularyArePadded) {
  Embedding tokens(/*rows=*/7, /*width=*/3);
  tokens.set_parallel(true);
  ASSERT_TRUE(LocaliseModel(tokens, Tp(3, 4)).ok());
  EXPECT_EQ(tokens.weight().shape, (Shape{2, 3}));
  EXPECT_EQ(tokens.weight().global_shape, (Shape{7, 3}));
  EXPECT_EQ(RangesText(tokens.weight(), Tp(3, 4)), "18:0:3 ");
  EXPECT_EQ(RangesText(tokens.weight(), Tp(1, 4)), "6:0:6 ");
  // 5 rows: the last rank has none.
  Embedding few(/*rows=*/5, /*width=*/1);
  few.set_parallel(true);
  ASSERT_TRUE(LocaliseModel(few, Tp(3, 4)).ok());
  EXPECT_EQ(RangesText(few.weight(), Tp(2, 4)), "4:0:1 ");
  EXPECT_EQ(RangesText(few.weight(), Tp(3, 4)), "");
}

// Only a head that is the last layer can leave its logits split.
TEST(Localise, LogitsStaySplitBehindAHead) {
  const auto model = SmallGpt();
  EXPECT_FALSE(KeepLogitsSplit(*model).has_value());
  ASSERT_TRUE(LocaliseModel(*model, Tp(1, 2)).ok());
  const auto split = KeepLogitsSplit(*model);
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->axis, "tp");
  EXPECT_EQ(split->classes, 11);
  ShapeRecord record;
  EXPECT_EQ(ShapeOnlyForward(*model, {2, 6}, DType::kI64, Device(), record)
                .value()
                .shape(),
            (Shape{2, 6, 6}));
  Sequential other;
  other.Append<Linear>(4, 8).set_parallel(Linear::kVocabulary);
  other.Append<LayerNorm>(8);
  ASSERT_TRUE(LocaliseModel(other, Tp(1, 2)).ok());
  EXPECT_FALSE(KeepLogitsSplit(other).has_value());
}

TEST(Localise, LayersThatDeclareNothingStayWhole) {
  Sequential model;
  model.Append<Linear>(5, 7);
  model.Append<LayerNorm>(7);
  ASSERT_TRUE(LocaliseModel(model, Tp(1, 2)).ok());
  EXPECT_EQ(Pieces(model), "");
}

TEST(Localise, RangesAreThoseOfSections) {
  Linear layer(/*in_features=*/3, /*out_features=*/8);
  layer.set_parallel(Linear::kColumn, {4, 2, 2});
  ASSERT_TRUE(layer.Localise(Tp(1, 2)).ok());
  EXPECT_EQ(RangesText(layer.weight(), Tp(1, 2)), "6:0:6 15:6:3 21:9:3 ");
  EXPECT_EQ(RangesOf(layer.weight()).size(), 3u);
  // Another rank's ranges, of this rank's piece.
  EXPECT_EQ(RangesText(layer.bias(), Tp(0, 2)), "0:0:2 4:2:1 6:3:1 ");
  EXPECT_EQ(RangesOf(layer.weight(), {})[0].count, 24);
}

// Returns the error of a model that has one column layer "fc" of `outputs`.
std::string ErrorOf(std::int64_t outputs, int tp,
                    std::vector<std::int64_t> sections = {}) {
  Sequential model;
  model.AppendNamed<Linear>("fc", 4, outputs)
      .set_parallel(Linear::kColumn, std::move(sections));
  const absl::Status status = LocaliseModel(model, Tp(0, tp));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(Localise, NamesTheLayerThatCannotBeCut) {
  EXPECT_EQ(
      ErrorOf(10, 4),
      "layer fc: parameter fc.weight[10, 4] cannot be cut along dimension "
      "0 for tp = 4: 10 is no multiple of 4; choose a width that is one, "
      "or a tp that divides 10");
  EXPECT_EQ(
      ErrorOf(12, 4, {8, 2, 2}),
      "layer fc: parameter fc.weight[12, 4] cannot be cut along dimension "
      "0 for tp = 4: 2 is no multiple of 4; choose a width that is one, "
      "or a tp that divides 2");
  EXPECT_EQ(ErrorOf(12, 4, {8, 8}),
            "layer fc: parameter fc.weight[12, 4] is cut along dimension 0 in "
            "sections that do not add up to 12; give those of all outputs or "
            "inputs of its layer");
  EXPECT_EQ(LocaliseModel(*SmallGpt(/*heads=*/3), Tp(0, 2)).message(),
            "layer h.0.attn: attention of 3 heads cannot be cut for tp = 2; "
            "choose multiples of it, or another tp");
  CausalSelfAttention::Options grouped;
  grouped.kv_heads = 2;
  CausalSelfAttention attention(16, 8, grouped);
  EXPECT_EQ(LocaliseModel(attention, Tp(0, 4)).message(),
            "the model: attention of 8 heads, and 2 of keys, cannot be cut for "
            "tp = 4; choose multiples of it, or another tp");
}

TEST(Localise, AModelIsCutOnceAndBeforeItHasMemory) {
  Sequential model;
  model.AppendNamed<Linear>("fc", 4, 8).set_parallel(Linear::kColumn);
  ASSERT_TRUE(LocaliseModel(model, Tp(0, 2)).ok());
  EXPECT_EQ(LocaliseModel(model, Tp(0, 2)),
            absl::FailedPreconditionError(
                "parameter fc.weight is a piece already; call LocaliseModel() "
                "once"));
  Sequential bound;
  bound.AppendNamed<Linear>("fc", 4, 8).set_parallel(Linear::kRow);
  const auto kernels = CreateReferenceKernels();
  const auto arena =
      *ParameterArena::Create({bound.Parameters()}, {}, kernels->allocator());
  EXPECT_EQ(LocaliseModel(bound, Tp(0, 2)),
            absl::FailedPreconditionError(
                "layer fc: parameter fc.weight has memory already; call "
                "LocaliseModel() before an arena binds it"));
}

// All modules that share a parameter cut it alike, in any order.
TEST(Localise, ATiedParameterIsCutWithItsModules) {
  for (const bool tied_first : {false, true}) {
    Sequential model;
    Linear& a = model.AppendNamed<Linear>("a", 4, 7);
    Linear& b = model.AppendNamed<Linear>("b", 4, 7);
    a.set_parallel(Linear::kVocabulary);
    b.set_parallel(Linear::kVocabulary);
    (tied_first ? a : b).TieParameter("weight", tied_first ? b : a, "weight");
    ASSERT_EQ(LocaliseModel(model, Tp(1, 2)), absl::OkStatus());
    EXPECT_EQ(a.weight().shape, (Shape{4, 4}));
    EXPECT_EQ(b.weight().shape, (Shape{4, 4}));
  }
}

TEST(Localise, RefusesATieThatOneModuleAloneCuts) {
  Sequential model;
  Linear& first = model.AppendNamed<Linear>("first", 4, 4);
  Linear& second = model.AppendNamed<Linear>("second", 4, 4);
  second.TieParameter("weight", first, "weight");
  second.set_parallel(Linear::kRow);
  EXPECT_EQ(LocaliseModel(model, Tp(0, 2)),
            absl::InvalidArgumentError(
                "layer second: parameter weight is tied to first.weight and "
                "cannot be cut along tp otherwise; cut both alike, leave them "
                "whole, or do not tie them"));
  // And one that another layer has, too.
  Sequential other;
  Linear& cut = other.AppendNamed<Linear>("first", 4, 4);
  other.AppendNamed<Linear>("second", 4, 4)
      .TieParameter("weight", cut, "weight");
  cut.set_parallel(Linear::kRow);
  EXPECT_EQ(LocaliseModel(other, Tp(0, 2)),
            absl::InvalidArgumentError(
                "parameter first.weight is also second.weight and cannot be "
                "cut along tp by one of them alone; cut both alike, leave them "
                "whole, or do not tie them"));
}

std::vector<AxisPlace> TpOfTokens(int coord, int size) {
  return {{"tp", coord, size, /*sequence=*/true}};
}

TEST(Localise, GradientsOfARanksTokensAreParts) {
  const auto model = SmallGpt();
  ASSERT_EQ(LocaliseModel(*model, TpOfTokens(1, 2)), absl::OkStatus());
  std::string parts;
  for (const Parameter* p : model->Parameters()) {
    if (p->sharding.partial_grad) absl::StrAppend(&parts, p->name, " ");
  }
  EXPECT_EQ(parts,
            "wpe.weight h.0.ln_1.weight h.0.ln_1.bias h.0.attn.c_proj.bias "
            "h.0.ln_2.weight h.0.ln_2.bias h.0.mlp.c_proj.bias ln_f.weight "
            "ln_f.bias ");
  ShapeRecord record;
  EXPECT_EQ(
      ShapeOnlyForward(*model, {2, 5}, DType::kI64, Device(), record).status(),
      absl::InvalidArgumentError(
          "in module wte: sequences of 5 tokens cannot be shared by 2 "
          "ranks along tp; take sequences of a multiple of 2, or leave "
          "sequence parallelism out"));
}

TEST(Localise, RefusesToShareTokensOfAModelThatDeclaresNothing) {
  Sequential model;
  LayerNorm& a = model.AppendNamed<LayerNorm>("a", 4);
  LayerNorm& b = model.AppendNamed<LayerNorm>("b", 4);
  b.TieParameter("weight", a, "weight");
  a.set_parallel(true);
  EXPECT_EQ(LocaliseModel(model, TpOfTokens(0, 2)),
            absl::InvalidArgumentError(
                "the model does not declare that ranks along tp may share the "
                "tokens of its sequences; let its layers declare it and call "
                "set_shares_tokens() (docs/parallelism.md), or leave sequence "
                "parallelism out"));
  model.set_shares_tokens();
  EXPECT_EQ(LocaliseModel(model, TpOfTokens(0, 2)),
            absl::InvalidArgumentError(
                "parameter a.weight is also b.weight and cannot be used for a "
                "rank's tokens by one of them alone; declare both alike, or do "
                "not tie them"));
}

TEST(Localise, APartWithoutPeersFails) {
  const auto kernels = CreateReferenceKernels();
  Sequential model;
  model.AppendNamed<Linear>("fc", 4, 8).set_parallel(Linear::kColumn);
  ASSERT_TRUE(LocaliseModel(model, Tp(0, 2)).ok());
  const auto arena =
      *ParameterArena::Create({model.Parameters()}, {}, kernels->allocator());
  Context ctx(*kernels);
  const Tensor x = Tensor::Zeros({2, 4}, DType::kF32, kernels->allocator());
  EXPECT_FALSE(model(ctx, x).defined());
  EXPECT_EQ(ctx.status(),
            absl::FailedPreconditionError(
                "in module fc: the layer is cut along tp, and the context has "
                "no collectives along it: call Context::set_collectives(), or "
                "run the whole model"));
}

}  // namespace
}  // namespace troupe::nn

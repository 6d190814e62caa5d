#include "nn/modules/attention.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/embedding.h"
#include "nn/modules/position_embedding.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

std::string NamesAndShapes(Module& module) {
  return absl::StrJoin(module.Parameters(), " ",
                       [](std::string* out, Parameter* p) {
                         out->append(p->name + p->shape.ToString());
                       });
}

class AttentionTest : public testing::Test {
 protected:
  // Gives the parameters of `module` memory and initial values.
  void Fill(Module& module) {
    arenas_.push_back(*ParameterArena::Create({module.Parameters()}, {},
                                              kernels_->allocator()));
    ASSERT_TRUE(arenas_.back()->Initialize(/*seed=*/3).ok());
    // Biases begin as zeros, which would hide biases of wrong rows.
    for (Parameter* p : module.Parameters()) {
      if (p->shape.rank() != 1) continue;
      const std::vector<double> draws = NormalDraws(p->name, p->shape.numel());
      for (std::size_t i = 0; i < draws.size(); ++i) {
        p->value.data<double>()[i] = draws[i];
      }
    }
  }
  Tensor Draws(const std::string& name, const Shape& shape) {
    return MakeTensor(shape, DType::kF64, NormalDraws(name, shape.numel()),
                      kernels_->allocator());
  }
  Tensor Call(Module& module, absl::Span<const Tensor> xs) {
    Context ctx(*kernels_);
    const TensorList ys = module.CallMany(ctx, xs);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    return ys.empty() ? Tensor() : ys[0];
  }
  Tensor CallMasked(MultiheadAttention& module, absl::Span<const Tensor> xs,
                    const MultiheadAttention::Masks& masks) {
    Context ctx(*kernels_);
    const Tensor y = module.CallMasked(ctx, xs, masks);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    return y;
  }
  Tensor Constant(const Shape& shape, DType dtype,
                  const std::vector<double>& values) {
    return MakeTensor(shape, dtype, values, kernels_->allocator());
  }
  std::string ErrorOf(Module& module, const Shape& x) {
    ShapeRecord record;
    return std::string(
        ShapeOnlyForward(module, x, DType::kF32, Device{}, record)
            .status()
            .message());
  }

  std::unique_ptr<Kernels> kernels_ = CreateReferenceKernels();
  std::vector<std::unique_ptr<ParameterArena>> arenas_;
};

MultiheadAttention::Options InF64() {
  MultiheadAttention::Options options;
  options.dtype = DType::kF64;
  return options;
}

TEST_F(AttentionTest, ParametersHaveTheNamesThatTheFieldUses) {
  MultiheadAttention attention(8, 2);
  EXPECT_EQ(NamesAndShapes(attention),
            "in_proj_weight[24, 8] in_proj_bias[24] out_proj.weight[8, 8] "
            "out_proj.bias[8]");
  CausalSelfAttention gpt(8, 4);
  EXPECT_EQ(NamesAndShapes(gpt),
            "c_attn.weight[24, 8] c_attn.bias[24] c_proj.weight[8, 8] "
            "c_proj.bias[8]");
  CausalSelfAttention::Options grouped;
  grouped.kv_heads = 2;
  grouped.bias = false;
  CausalSelfAttention fewer(8, 4, grouped);
  EXPECT_EQ(NamesAndShapes(fewer), "c_attn.weight[16, 8] c_proj.weight[8, 8]");
}

TEST_F(AttentionTest, OneTensorIsThreeEqualOnes) {
  for (bool rotary : {false, true}) {
    MultiheadAttention::Options options = InF64();
    if (rotary) options.rotary.emplace();
    options.causal = true;
    MultiheadAttention attention(12, 3, options);
    Fill(attention);
    const Tensor x = Draws("x", {2, 5, 12});
    const std::vector<double> self = ValuesOf(Call(attention, {x}));
    EXPECT_TRUE(Near(ValuesOf(Call(attention, {x, x})), self, 1e-13));
    EXPECT_TRUE(Near(ValuesOf(Call(attention, {x, x, x})), self, 1e-13));
  }
}

TEST_F(AttentionTest, PaddedKeysCountForNothing) {
  MultiheadAttention attention(8, 2, InF64());
  Fill(attention);
  const Tensor x = Draws("x", {2, 3, 8});
  const Tensor memory = Draws("memory", {2, 5, 8});
  MultiheadAttention::Masks masks;
  masks.key_padding_mask =
      Constant({2, 5}, DType::kI64, {0, 0, 0, 0, 0, 0, 0, 0, 1, 1});
  const Tensor y = CallMasked(attention, {x, memory}, masks);
  const Tensor whole = Call(attention, {x.Slice(0, 1), memory.Slice(0, 1)});
  const Tensor three = memory.FlatView(5 * 8, {1, 3, 8});
  const Tensor part = Call(attention, {x.Slice(1, 2), three});
  EXPECT_TRUE(Near(ValuesOf(y.Slice(0, 1)), ValuesOf(whole), 1e-13));
  EXPECT_TRUE(Near(ValuesOf(y.Slice(1, 2)), ValuesOf(part), 1e-13));
}

// A mask, a bias, and a mask of each head hide what a causal module hides.
TEST_F(AttentionTest, MasksHideKeysFromQueries) {
  MultiheadAttention attention(8, 2, InF64());
  Fill(attention);
  MultiheadAttention::Options options = InF64();
  options.causal = true;
  MultiheadAttention causal(8, 2, options);
  Fill(causal);
  const Tensor x = Draws("x", {2, 3, 8});
  const std::vector<double> want = ValuesOf(Call(causal, {x}));
  EXPECT_FALSE(Near(ValuesOf(Call(attention, {x})), want, 1e-3));

  const std::vector<double> future = {0, 1, 1, 0, 0, 1, 0, 0, 0};
  MultiheadAttention::Masks masks;
  masks.attn_mask = Constant({3, 3}, DType::kI64, future);
  EXPECT_TRUE(Near(ValuesOf(CallMasked(attention, {x}, masks)), want, 1e-13));
  std::vector<double> hidden;
  for (double element : future) {
    hidden.push_back(element == 0 ? 0
                                  : -std::numeric_limits<double>::infinity());
  }
  MultiheadAttention::Masks added;
  added.attn_bias = Constant({3, 3}, DType::kF64, hidden);
  EXPECT_TRUE(Near(ValuesOf(CallMasked(attention, {x}, added)), want, 1e-13));

  // Sample 0 alone is causal, in both heads.
  std::vector<double> by_head(4 * 9, 0);
  for (int i = 0; i < 18; ++i) by_head[i] = future[i % 9];
  masks.attn_mask = Constant({4, 3, 3}, DType::kF32, by_head);
  const Tensor mixed = CallMasked(attention, {x, x, x}, masks);
  const Tensor open = Call(attention, {x});
  EXPECT_TRUE(Near(ValuesOf(mixed.Slice(0, 1)),
                   {want.begin(), want.begin() + 24}, 1e-13));
  EXPECT_TRUE(
      Near(ValuesOf(mixed.Slice(1, 2)), ValuesOf(open.Slice(1, 2)), 1e-13));

  // A key is seen if both masks show it: the padded key 0 leaves query 0 of a
  // causal sample without any, whose result is the bias of out_proj.
  masks.attn_mask = Constant({3, 3}, DType::kI64, future);
  masks.key_padding_mask = Constant({2, 3}, DType::kI64, {1, 0, 0, 0, 0, 0});
  const Tensor both = CallMasked(attention, {x}, masks);
  for (Parameter* p : attention.Parameters()) {
    if (p->name != "out_proj.bias") continue;
    EXPECT_TRUE(
        Near(ValuesOf(both.FlatView(0, {8})), ValuesOf(p->value), 1e-15));
  }
  EXPECT_TRUE(
      Near(ValuesOf(both.Slice(1, 2)), {want.begin() + 24, want.end()}, 1e-13));
}

TEST_F(AttentionTest, MasksMustFit) {
  MultiheadAttention attention(8, 2, InF64());
  Fill(attention);
  const Tensor x = Draws("x", {2, 3, 8});
  MultiheadAttention::Masks masks;
  masks.attn_mask = Constant({3, 3, 3}, DType::kF64, std::vector<double>(27));
  Context ctx(*kernels_);
  EXPECT_FALSE(attention.CallMasked(ctx, {x}, masks).defined());
  EXPECT_EQ(ctx.status().message(),
            "attention takes a mask of floating numbers that broadcasts to "
            "[N, Hq, T, S], [2, 2, 3, 3], got f64[3, 3, 3]; reshape it, or "
            "compare it with 0");
  Context none(*kernels_);
  EXPECT_FALSE(attention.CallMasked(none, {}, {}).defined());
  EXPECT_EQ(none.status().message(),
            "attention takes {x}, {query, memory} or {query, key, value}, got "
            "0 tensors");
}

TEST_F(AttentionTest, ACausalOneDoesNotLookAhead) {
  CausalSelfAttention::Options options;
  options.dtype = DType::kF64;
  options.rotary.emplace();
  options.kv_heads = 1;
  CausalSelfAttention attention(8, 2, options);
  Fill(attention);
  const Tensor x = Draws("x", {1, 6, 8});
  const std::vector<double> before = ValuesOf(Call(attention, {x}));
  for (std::int64_t i = 4 * 8; i < 6 * 8; ++i) x.data<double>()[i] += 1;
  const std::vector<double> after = ValuesOf(Call(attention, {x}));
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i] == after[i], i < 4 * 8) << i;
  }
}

// Rotary positions: scores depend on distances alone.
TEST_F(AttentionTest, RotaryPositionsMayBeginAnywhere) {
  MultiheadAttention::Options options = InF64();
  options.rotary.emplace();
  MultiheadAttention from_zero(8, 2, options);
  options.rotary->first = 50;
  MultiheadAttention from_fifty(8, 2, options);
  MultiheadAttention nowhere(8, 2, InF64());
  for (Module* module :
       {static_cast<Module*>(&from_zero), static_cast<Module*>(&from_fifty),
        static_cast<Module*>(&nowhere)}) {
    Fill(*module);
  }
  const Tensor x = Draws("x", {1, 7, 8});
  const std::vector<double> want = ValuesOf(Call(from_zero, {x}));
  EXPECT_TRUE(Near(ValuesOf(Call(from_fifty, {x})), want, 1e-12));
  EXPECT_FALSE(Near(ValuesOf(Call(nowhere, {x})), want, 1e-3));
}

// A sample has the same bits whichever samples are beside it.
TEST_F(AttentionTest, ASampleIsOnItsOwn) {
  const auto cpu = CreateCpuKernels({});
  const Shape shape = {3, 37, 2 + 2, 24};
  const Tensor qkv = MakeTensor(
      shape, DType::kF32, NormalDraws("x", shape.numel()), cpu->allocator());
  Context ctx(*cpu);
  ops::AttentionOptions options;
  options.heads = 2;
  options.kv_heads = 1;
  const Tensor all = ops::PackedAttention(ctx, qkv, options);
  for (std::int64_t n = 0; n < 3; ++n) {
    const Tensor one = ops::PackedAttention(ctx, qkv.Slice(n, n + 1), options);
    ASSERT_TRUE(ctx.ok()) << ctx.status();
    EXPECT_TRUE(BitEqual(one, all.Slice(n, n + 1)));
  }
}

// So is a query, whose keys and values are copied if there are many queries.
TEST_F(AttentionTest, AQueryIsOnItsOwn) {
  const auto cpu = CreateCpuKernels({});
  const auto draws = [&](const char* name, const Shape& shape) {
    return MakeTensor(shape, DType::kF32, NormalDraws(name, shape.numel()),
                      cpu->allocator());
  };
  const std::int64_t T = 9, row = 4 * 19;
  const Tensor q = draws("q", {1, T, row}), kv = draws("kv", {1, 300, row});
  Context ctx(*cpu);
  ops::AttentionOptions options;
  options.heads = 4;
  options.kv_heads = 2;
  const Tensor all = ops::PackedAttention(ctx, q, kv, options);
  for (std::int64_t count = 1; count < T; ++count) {
    const Shape shape = {1, count, row};
    const std::int64_t from = (T - count) * row;
    const Tensor some =
        ops::PackedAttention(ctx, q.FlatView(from, shape), kv, options);
    ASSERT_TRUE(ctx.ok()) << ctx.status();
    EXPECT_TRUE(BitEqual(some, all.FlatView(from, shape))) << count;
  }
}

TEST_F(AttentionTest, HeadsMustDivideTheWidth) {
  MultiheadAttention attention(8, 3);
  EXPECT_EQ(ErrorOf(attention, {1, 2, 8}),
            "attention of width 8 cannot have 3 heads; choose a number that "
            "divides it");
  CausalSelfAttention gpt(8, 3);
  EXPECT_EQ(ErrorOf(gpt, {1, 2, 8}),
            "attention of width 8 cannot have 3 heads; choose a number that "
            "divides it");
}

TEST_F(AttentionTest, PositionsAreThoseOfTheTable) {
  PositionEmbedding positions(4, 3);
  EXPECT_EQ(NamesAndShapes(positions), "weight[4, 3]");
  EXPECT_EQ(ErrorOf(positions, {2, 4, 3}), "");
  EXPECT_EQ(ErrorOf(positions, {2, 5, 3}),
            "positions take x[N, T, D] and table[P, D] of one dtype with rows "
            "for all T, got f32[2, 5, 3] from position 0 and f32[4, 3]");
}

TEST_F(AttentionTest, ThePaddingRowOfATableBeginsAsZeros) {
  Embedding::Options options;
  options.padding_index = 2;
  options.dtype = DType::kF64;
  Embedding table(5, 3, options);
  Fill(table);
  const Tensor& weight = table.Parameters()[0]->value;
  EXPECT_EQ(ValuesOf(weight.Slice(2, 3)), std::vector<double>(3, 0.0));
  for (std::int64_t row : {0, 1, 3, 4}) {
    for (double value : ValuesOf(weight.Slice(row, row + 1))) {
      EXPECT_NE(value, 0) << row;
    }
  }
  options.padding_index = 5;
  Embedding outside(5, 3, options);
  Fill(outside);
  Context ctx(*kernels_);
  outside(ctx, MakeTensor({1}, DType::kI64, {0}, kernels_->allocator()));
  EXPECT_EQ(ctx.status().message(),
            "embedding takes a row of the table for padding, got 5 for "
            "f64[5, 3]");
}

}  // namespace
}  // namespace troupe::nn

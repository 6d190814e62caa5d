// Tests attention, positions and rotations with a key-value cache: what a
// forward of new tokens gives has the bits of a forward of the whole text, on
// both kernel sets.

#include "nn/autograd/kv_cache.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/context.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/attention.h"
#include "nn/modules/position_embedding.h"
#include "nn/modules/sequential.h"
#include "nn/ops/cast.h"

namespace troupe::nn {
namespace {

using ::testing::HasSubstr;
using Rows = std::vector<TextPlaces::Row>;

constexpr std::int64_t kContext = 300, kWidth = 32, kTexts = 3;

struct Case {
  const char* name;
  bool reference = false;
  DType dtype = DType::kF32;
  std::int64_t kv_heads = 0;
  bool rotary = false;
  bool multihead = false;
};

std::unique_ptr<Sequential> ModelOf(const Case& c) {
  auto model = std::make_unique<Sequential>();
  PositionEmbedding::Options positions;
  positions.dtype = c.dtype;
  positions.init_stddev = 1;
  if (!c.rotary) model->Append<PositionEmbedding>(kContext, kWidth, positions);
  for (int layer = 0; layer < 2; ++layer) {
    if (c.multihead) {
      MultiheadAttention::Options options;
      options.causal = true;
      options.dtype = c.dtype;
      if (c.rotary) options.rotary.emplace();
      model->Append<MultiheadAttention>(kWidth, 4, options);
    } else {
      CausalSelfAttention::Options options;
      options.kv_heads = c.kv_heads;
      options.dtype = c.dtype;
      options.init_stddev = 0.3;
      options.projection_init_stddev = 0.3;
      if (c.rotary) options.rotary.emplace();
      model->Append<CausalSelfAttention>(kWidth, 4, options);
    }
  }
  return model;
}

class KvCacheTest : public ::testing::TestWithParam<Case> {
 protected:
  KvCacheTest()
      : kernels_(GetParam().reference ? CreateReferenceKernels()
                                      : CreateCpuKernels({})),
        model_(ModelOf(GetParam())),
        arena_(*ParameterArena::Create({model_->Parameters()}, {},
                                       kernels_->allocator())) {
    EXPECT_TRUE(arena_->Initialize(/*seed=*/3).ok());
  }

  // Returns tokens [begin, end) of text `text` as f32.
  Tensor Part(int text, std::int64_t begin, std::int64_t end) {
    Tensor x = Tensor::Empty({1, end - begin, kWidth}, DType::kF32, memory_);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const std::int64_t at = i + begin * kWidth + 1000 * text;
      x.data<float>()[i] = static_cast<float>(at * at % 17 - 8) / 8;
    }
    return x;
  }
  // Returns samples of one length, one after another.
  Tensor Together(const std::vector<Tensor>& parts) {
    Tensor x = Tensor::Empty(
        {static_cast<std::int64_t>(parts.size()), parts[0].dim(1), kWidth},
        DType::kF32, memory_);
    float* to = x.data<float>();
    for (const Tensor& part : parts) {
      to = std::copy_n(part.data<float>(), part.numel(), to);
    }
    return x;
  }

  Tensor Run(const Tensor& x, const Rows& rows) {
    Context ctx(*kernels_);
    ctx.set_training(false);
    if (!rows.empty()) {
      EXPECT_TRUE(cache_.Begin({kTexts, kContext, rows}).ok());
      ctx.set_kv_cache(&cache_);
    }
    Tensor y = ops::Cast(ctx, x, GetParam().dtype);
    y = ops::Cast(ctx, (*model_)(ctx, y), DType::kF32);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    return y;
  }
  // Expects sample n of y to be tokens [begin, end) of the text's whole
  // forward.
  void ExpectPart(const Tensor& y, std::int64_t n, int text, std::int64_t begin,
                  std::int64_t end) {
    const Tensor whole = Run(Part(text, 0, end), {});
    const std::int64_t count = (end - begin) * kWidth;
    const Tensor wanted = whole.FlatView(begin * kWidth, {count});
    const Tensor seen = y.FlatView(n * y.dim(1) * kWidth, {count});
    if (GetParam().dtype == DType::kF32) {
      EXPECT_TRUE(BitEqual(seen, wanted)) << text << " at " << begin;
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      ASSERT_NEAR(seen.data<float>()[i], wanted.data<float>()[i], 0.05);
    }
  }

  CachingAllocator memory_;
  const std::unique_ptr<Kernels> kernels_;
  const std::unique_ptr<Sequential> model_;
  const std::unique_ptr<ParameterArena> arena_;
  KvCache cache_;
};

// Texts of different lengths side by side, across a block of 256 keys; then one
// is cut back, and its place has another one.
TEST_P(KvCacheTest, NewTokensAreThoseOfTheWholeText) {
  ExpectPart(Run(Part(0, 0, 253), {{0, 0}}), 0, 0, 0, 253);
  ExpectPart(Run(Part(1, 0, 20), {{2, 0}}), 0, 1, 0, 20);
  for (std::int64_t t = 0; t < 6; ++t) {
    const Tensor y =
        Run(Together({Part(1, 20 + t, 21 + t), Part(9, 0, 1),
                      Part(0, 253 + t, 254 + t), Part(9, 0, 1), Part(9, 0, 1)}),
            {{2, 20 + t}, {-1, 0}, {0, 253 + t}, {-1, 0}, {-1, 0}});
    ExpectPart(y, 0, 1, 20 + t, 21 + t);
    ExpectPart(y, 2, 0, 253 + t, 254 + t);
  }
  // Several tokens at a time.
  ExpectPart(
      Run(Together({Part(1, 22, 26), Part(0, 259, 263)}), {{2, 22}, {0, 259}}),
      1, 0, 259, 263);
  // A new text in an old place.
  ExpectPart(Run(Part(4, 0, 30), {{0, 0}}), 0, 4, 0, 30);
  const Tensor y =
      Run(Together({Part(4, 30, 31), Part(1, 26, 27)}), {{0, 30}, {2, 26}});
  ExpectPart(y, 0, 4, 30, 31);
  ExpectPart(y, 1, 1, 26, 27);
  // The last token of the context.
  Run(Part(5, 0, kContext - 1), {{1, 0}});
  ExpectPart(Run(Part(5, kContext - 1, kContext), {{1, kContext - 1}}), 0, 5,
             kContext - 1, kContext);
}

TEST_P(KvCacheTest, MemoryIsTakenOnce) {
  const Case& c = GetParam();
  Run(Part(0, 0, 5), {{0, 0}});
  const std::int64_t kv_heads = c.kv_heads > 0 ? c.kv_heads : 4;
  const std::size_t bytes =
      2 * kTexts * kContext * 2 * kv_heads * (kWidth / 4) * SizeOf(c.dtype);
  EXPECT_EQ(cache_.bytes(), bytes);
  EXPECT_GE(kernels_->allocator().stats().bytes_in_use, bytes);
  const auto before = kernels_->allocator().stats().bytes_in_use;
  for (std::int64_t t = 5; t < 100; ++t) Run(Part(0, t, t + 1), {{0, t}});
  EXPECT_EQ(kernels_->allocator().stats().bytes_in_use, before);
}

TEST_P(KvCacheTest, WhatDoesNotFitIsSaid) {
  const auto error = [&](const Tensor& x, const Rows& rows) {
    const absl::Status begun = cache_.Begin({kTexts, kContext, rows});
    if (!begun.ok()) return std::string(begun.message());
    Context ctx(*kernels_);
    ctx.set_training(false);
    ctx.set_kv_cache(&cache_);
    (*model_)(ctx, ops::Cast(ctx, x, GetParam().dtype));
    return std::string(ctx.status().message());
  };
  EXPECT_THAT(error(Part(0, 0, 5), {{0, 0}, {1, 0}}),
              HasSubstr("the key-value cache has places for 2 samples, got 1"));
  EXPECT_THAT(
      error(Part(0, 0, 5), {{0, kContext - 4}}),
      HasSubstr("the key-value cache has a context of 300 tokens, got 5 "
                "after 296"));
  EXPECT_EQ(error(Part(0, 0, 5), {{3, 0}}),
            "a key-value cache of 3 texts of 300 tokens: there is no place for "
            "text 3 "
            "after 0 tokens; begin with more texts or a longer context");
  EXPECT_EQ(
      KvCache().Begin({}).message(),
      "a key-value cache of 0 texts of 0 tokens; both must be at least 1");
}

TEST_P(KvCacheTest, ItHasNoBackward) {
  Tape tape;
  Context ctx(*kernels_, &tape);
  ASSERT_TRUE(cache_.Begin({kTexts, kContext, {{0, 0}}}).ok());
  ctx.set_kv_cache(&cache_);
  (*model_)(ctx, ops::Cast(ctx, Part(0, 0, 5), GetParam().dtype));
  EXPECT_THAT(std::string(ctx.status().message()),
              HasSubstr(": a key-value cache has no backward"));
}

INSTANTIATE_TEST_SUITE_P(
    All, KvCacheTest,
    ::testing::Values(Case{"cpu"}, Case{"reference", true},
                      Case{"grouped", false, DType::kF32, 2},
                      Case{"grouped_reference", true, DType::kF32, 1},
                      Case{"rotary", false, DType::kF32, 2, true},
                      Case{"rotary_reference", true, DType::kF32, 0, true},
                      Case{"bf16", false, DType::kBF16, 2},
                      Case{"multihead", false, DType::kF32, 0, false, true},
                      Case{"multihead_rotary", true, DType::kF32, 0, true,
                           true}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace troupe::nn

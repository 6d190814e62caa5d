// Tests of the keys of attention, and of which calls a library may compute.

#include "nn/kernels/cuda/libraries/attention_spec.h"

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/choice_cache.h"

namespace troupe::nn::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

AttentionSpec Gpt() {
  AttentionSpec spec;
  spec.size = {8, 1024, 1024, 12, 12, 64};
  spec.packing = AttentionPacking::kAll;
  spec.causal = true;
  return spec;
}

TEST(AttentionSpec, KeysCanBeRead) {
  AttentionSpec spec = Gpt();
  EXPECT_EQ(spec.Key(),
            "attention_forward:bf16:8.1024.1024:12.12.64:qkv+causal");
  spec.way = AttentionWay::kBackward;
  spec.packing = AttentionPacking::kKeysAndValues;
  spec.size.S = 77, spec.size.Hkv = 4;
  spec.causal = false;
  spec.dtype = DType::kF16;
  EXPECT_EQ(spec.Key(), "attention_backward:f16:8.1024.77:12.4.64:q.kv");
}

TEST(AttentionSpec, KeysTellAllSpecsApart) {
  const std::vector<std::function<void(AttentionSpec&)>> changes = {
      [](AttentionSpec& s) { s.way = AttentionWay::kBackward; },
      [](AttentionSpec& s) { s.size.N = 4; },
      [](AttentionSpec& s) { s.size.T = s.size.S = 512; },
      [](AttentionSpec& s) { s.size.Hq = 24; },
      [](AttentionSpec& s) { s.size.Hkv = 6; },
      [](AttentionSpec& s) { s.size.D = 128; },
      [](AttentionSpec& s) { s.packing = AttentionPacking::kApart; },
      [](AttentionSpec& s) { s.packing = AttentionPacking::kKeysAndValues; },
      [](AttentionSpec& s) {
        s.packing = AttentionPacking::kApart;
        s.size.S = 100;
      },
      [](AttentionSpec& s) { s.causal = false; },
      [](AttentionSpec& s) { s.dtype = DType::kF16; },
  };
  std::set<std::string> keys = {Gpt().Key()};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    AttentionSpec spec = Gpt();
    changes[i](spec);
    EXPECT_TRUE(spec.Check().ok()) << spec.Check();
    EXPECT_FALSE(spec == Gpt()) << "change " << i;
    EXPECT_TRUE(keys.insert(spec.Key()).second) << spec.Key();
    EXPECT_TRUE(ChoiceCache::IsKey(spec.Key()));
  }
}

TEST(AttentionSpec, WhatDoesNotGoTogetherIsRefused) {
  struct Wrong {
    std::function<void(AttentionSpec&)> change;
    const char* word;
  };
  const std::vector<Wrong> wrongs = {
      {[](AttentionSpec& s) { s.size.N = 0; }, "extent"},
      {[](AttentionSpec& s) { s.size.T = std::int64_t{1} << 31; }, "extent"},
      {[](AttentionSpec& s) { s.size.Hkv = 5; }, "heads"},
      {[](AttentionSpec& s) { s.size.S = 1023; }, "as many"},
      {[](AttentionSpec& s) { s.dtype = DType::kF32; }, "bf16"},
  };
  for (const Wrong& wrong : wrongs) {
    AttentionSpec spec = Gpt();
    wrong.change(spec);
    const absl::Status status = spec.Check();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << spec.Key();
    const std::string words(status.message());
    EXPECT_THAT(words, StartsWith(spec.Key()));
    EXPECT_THAT(words, HasSubstr(wrong.word));
  }
}

// The heads of a row are those of the packed tensor.
TEST(AttentionSpec, KnowsTheRowsOfPackedTensors) {
  AttentionSpec spec = Gpt();
  spec.size.Hkv = 3;
  EXPECT_EQ(spec.query_row_heads(), 18);
  EXPECT_EQ(spec.key_row_heads(), 18);
  EXPECT_EQ(spec.value_row_heads(), 18);
  spec.packing = AttentionPacking::kKeysAndValues;
  EXPECT_EQ(spec.query_row_heads(), 12);
  EXPECT_EQ(spec.key_row_heads(), 6);
  EXPECT_EQ(spec.value_row_heads(), 6);
  spec.packing = AttentionPacking::kApart;
  EXPECT_EQ(spec.query_row_heads(), 12);
  EXPECT_EQ(spec.key_row_heads(), 3);
  EXPECT_EQ(spec.value_row_heads(), 3);
}

TEST(AttentionSpec, OperandsThatAreMissingAreNamed) {
  CachingAllocator memory;
  const auto some = [&] { return Tensor::Empty({4}, DType::kBF16, memory); };
  AttentionSpec spec = Gpt();
  AttentionOperands operands;
  operands.q = operands.y = some();
  EXPECT_THAT(std::string(CheckOperands(spec, operands).message()),
              HasSubstr("lse is missing"));
  operands.lse = some();
  EXPECT_TRUE(CheckOperands(spec, operands).ok());
  spec.packing = AttentionPacking::kApart;
  EXPECT_THAT(std::string(CheckOperands(spec, operands).message()),
              HasSubstr("k is missing"));
  operands.k = operands.v = some();
  EXPECT_TRUE(CheckOperands(spec, operands).ok());
  spec.way = AttentionWay::kBackward;
  operands.dy = operands.dq = operands.dk = some();
  EXPECT_THAT(std::string(CheckOperands(spec, operands).message()),
              HasSubstr("dv is missing"));
  operands.dv = some().FlatView(1, {2});
  EXPECT_THAT(std::string(CheckOperands(spec, operands).message()),
              HasSubstr("dv is not aligned"));
}

TEST(AttentionIsForLibrary, LeavesTheRestToOwnKernels) {
  const AttentionSizes gpt = Gpt().size;
  const AttentionRule plain;
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    EXPECT_TRUE(AttentionIsForLibrary(plain, gpt, dtype));
  }
  for (DType dtype : {DType::kF32, DType::kF64}) {
    EXPECT_FALSE(AttentionIsForLibrary(plain, gpt, dtype));
  }
  AttentionRule dropping;
  dropping.dropout =
      DropoutMask{{RandomKey(/*seed=*/7, Purpose::kDropout), {5, 6, 7}}};
  EXPECT_FALSE(AttentionIsForLibrary(dropping, gpt, DType::kBF16));
  const auto takes = [&](std::function<void(AttentionSizes&)> change) {
    AttentionSizes size = gpt;
    change(size);
    return AttentionIsForLibrary(plain, size, DType::kBF16);
  };
  EXPECT_TRUE(takes([](AttentionSizes& s) { s.D = 128; }));
  EXPECT_TRUE(takes([](AttentionSizes& s) { s.D = 8; }));
  EXPECT_FALSE(takes([](AttentionSizes& s) { s.D = 60; }));
  EXPECT_FALSE(takes([](AttentionSizes& s) { s.D = 136; }));
  EXPECT_TRUE(takes([](AttentionSizes& s) { s.T = kLibraryQueriesMin; }));
  EXPECT_FALSE(takes([](AttentionSizes& s) { s.T = kLibraryQueriesMin - 1; }));
  EXPECT_TRUE(takes([](AttentionSizes& s) { s.S = 1; }));
  EXPECT_FALSE(takes([](AttentionSizes& s) { s.N = 0; }));
}

TEST(SamplesAtOnce, IsTheLargestDivisorThatFits) {
  EXPECT_EQ(SamplesAtOnce(64, 6400, 6400), 64);
  EXPECT_EQ(SamplesAtOnce(64, 6400, 6399), 32);
  EXPECT_EQ(SamplesAtOnce(64, 6400, 1000), 8);
  EXPECT_EQ(SamplesAtOnce(60, 6000, 1000), 10);
  EXPECT_EQ(SamplesAtOnce(7, 700, 650), 1);
  EXPECT_EQ(SamplesAtOnce(7, 700, 99), 0);
  // Each sample needs 50.5 bytes, rounded up.
  EXPECT_EQ(SamplesAtOnce(2, 101, 50), 0);
}

}  // namespace
}  // namespace troupe::nn::cuda

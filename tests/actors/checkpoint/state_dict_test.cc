#include "actors/checkpoint/state_dict.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/actors/checkpoint/checkpoint_fixture.h"

namespace troupe::actors {
namespace {

using Names = std::vector<std::string>;

class StateDictTest : public CheckpointTest {
 protected:
  // Returns a checkpoint of two stages, "0" and "3" (CheckpointTest::Shard()).
  Checkpoint Saved() {
    const std::string path = *WriteCheckpoint(
        files_, dir_, StateAt(1), {Shard("0", 1), Shard("3", 2)}, /*keep=*/1);
    return *Checkpoint::Open(files_, path);
  }
  static StateDictSpec Same() {
    const nn::TensorSpec weight = {{2, 3}, nn::DType::kF32};
    const nn::TensorSpec bias = {{2}, nn::DType::kF32};
    StateDictSpec spec;
    for (const std::string layer : {"0", "3"}) {
      spec.model[layer + ".weight"] = weight;
      spec.model[layer + ".bias"] = bias;
      spec.optimizer[layer + ".weight.momentum_buffer"] = weight;
      spec.optimizer[layer + ".bias.momentum_buffer"] = bias;
    }
    return spec;
  }
};

TEST_F(StateDictTest, TheSameNamesOfAllStages) {
  const IncompatibleKeys keys = FindIncompatibleKeys(Saved(), Same());
  EXPECT_EQ(keys.missing, Names{});
  EXPECT_EQ(keys.unexpected, Names{});
  EXPECT_EQ(keys.mismatched, Names{});
}

TEST_F(StateDictTest, WhatDiffers) {
  StateDictSpec wanted = Same();
  wanted.model.erase("0.weight");
  wanted.optimizer.erase("3.weight.momentum_buffer");
  wanted.model["9.weight"] = {{1}, nn::DType::kF32};
  wanted.optimizer["9.weight.momentum_buffer"] = {{1}, nn::DType::kF32};
  wanted.model["3.weight"].shape = {3, 2};
  wanted.optimizer["3.bias.momentum_buffer"].dtype = nn::DType::kF64;
  const IncompatibleKeys keys = FindIncompatibleKeys(Saved(), wanted);
  EXPECT_EQ(keys.missing, (Names{"9.weight", "9.weight.momentum_buffer"}));
  EXPECT_EQ(keys.unexpected, (Names{"0.weight", "3.weight.momentum_buffer"}));
  EXPECT_EQ(keys.mismatched,
            (Names{"3.weight is f32[2, 3], not f32[3, 2]",
                   "3.bias.momentum_buffer is f32[2], not f64[2]"}));
}

// Earlier versions kept running statistics of f64 models in f32.
TEST_F(StateDictTest, F32StatisticsOfAnF64ModelAreWidened) {
  const Checkpoint saved = Saved();
  nn::Buffer buffer;
  buffer.shape = {2};
  for (const std::string name : {"0.bias", "3.bias", "missing"}) {
    buffer.name = name;
    buffer.dtype = nn::DType::kF64;
    EXPECT_EQ(SavedDType(saved, buffer),
              name == "missing" ? nn::DType::kF64 : nn::DType::kF32);
    buffer.dtype = nn::DType::kI64;
    EXPECT_EQ(SavedDType(saved, buffer), nn::DType::kI64);
  }
  const nn::Tensor wide = nn::Tensor::Empty({2}, nn::DType::kF64, allocator_);
  ASSERT_TRUE(ReadModelTensor(saved, "3.bias", wide, allocator_).ok());
  EXPECT_EQ(wide.data<double>()[0], 2);
  EXPECT_EQ(wide.data<double>()[1], 2);
  const nn::Tensor same = Filled({2}, 0);
  ASSERT_TRUE(ReadModelTensor(saved, "0.bias", same, allocator_).ok());
  EXPECT_EQ(same.data<float>()[1], 1);
  EXPECT_FALSE(ReadModelTensor(saved, "missing", wide, allocator_).ok());
}

TEST(ListKeysTest, ALongListIsCut) {
  EXPECT_EQ(ListKeys(Names{"a", "b"}), "a, b");
  Names names;
  for (int i = 0; i < 40; ++i) names.push_back(absl::StrCat(i));
  const std::string list = ListKeys(names);
  EXPECT_EQ(list.substr(0, 9), "0, 1, 2, ");
  EXPECT_EQ(list.substr(list.size() - 18), " 30, 31 and 8 more");
}

}  // namespace
}  // namespace troupe::actors

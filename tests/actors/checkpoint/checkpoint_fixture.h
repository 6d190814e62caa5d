// A fixture with a small model to save, and a folder of its own for each test.
//
//   class MyTest : public CheckpointTest {};
//   TEST_F(MyTest, ...) {
//     WriteCheckpoint(files_, dir_, StateAt(100), Shards(/*fill=*/1.0f), 3);
//     EXPECT_EQ(FillOf(dir_ + "/step-00000100"), 1.0f);
//   }

#ifndef TESTS_ACTORS_CHECKPOINT_CHECKPOINT_FIXTURE_H_
#define TESTS_ACTORS_CHECKPOINT_CHECKPOINT_FIXTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "actors/checkpoint/checkpoint.h"
#include "gtest/gtest.h"
#include "nn/tensor/tensor.h"
#include "tests/base/faulty_file_system.h"
#include "tests/base/fresh_path.h"

namespace troupe::actors {

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override { dir_ = base::FreshPath(); }

  static TrainerState StateAt(std::int64_t step) {
    TrainerState state;
    state.step = step;
    state.seed = 7;
    state.sampler = {/*epoch=*/1, /*samples_consumed=*/step * 4,
                     /*dataset_size=*/1000, /*seed=*/7};
    state.plan = "dp=2 pp=1\n";
    state.versions = {{"troupe", "test"}};
    return state;
  }

  nn::Tensor Filled(const nn::Shape& shape, float fill) {
    nn::Tensor t = nn::Tensor::Empty(shape, nn::DType::kF32, allocator_);
    for (float& x : t.span<float>()) x = fill;
    return t;
  }
  CheckpointShard Shard(const std::string& layer, float fill) {
    CheckpointShard shard;
    shard.model = {{layer + ".weight", Filled({2, 3}, fill)},
                   {layer + ".bias", Filled({2}, fill)}};
    shard.optimizer = {
        {layer + ".weight.momentum_buffer", Filled({2, 3}, -fill)},
        {layer + ".bias.momentum_buffer", Filled({2}, -fill)}};
    return shard;
  }
  // Returns the shard of a model in one stage.
  std::vector<CheckpointShard> Shards(float fill) { return {Shard("0", fill)}; }

  // Returns the value that fills the checkpoint's tensors; -1 if it is damaged.
  float FillOf(const std::string& path) {
    const auto saved = Checkpoint::Open(files_, path);
    if (!saved.ok()) return -1;
    const nn::Tensor weight = Filled({2, 3}, 0);
    const nn::Tensor momentum = Filled({2}, 0);
    if (!saved->ReadModel("0.weight", weight).ok() ||
        !saved->ReadOptimizer("0.bias.momentum_buffer", momentum).ok()) {
      return -1;
    }
    const float fill = weight.data<float>()[5];
    return momentum.data<float>()[1] == -fill ? fill : -1;
  }

  std::vector<std::string> Listed() {
    return files_.List(dir_).value_or(std::vector<std::string>{"no folder"});
  }

  base::FaultyFileSystem files_;  // without faults: it never waits for a disk
  nn::CachingAllocator allocator_;
  std::string dir_;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CHECKPOINT_CHECKPOINT_FIXTURE_H_

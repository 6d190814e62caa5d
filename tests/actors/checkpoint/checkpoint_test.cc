#include "actors/checkpoint/checkpoint.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/layout.h"
#include "gtest/gtest.h"
#include "nn/serialize/safetensors.h"
#include "tests/actors/checkpoint/checkpoint_fixture.h"

namespace troupe::actors {
namespace {

using Names = std::vector<std::string>;

class CheckpointFilesTest : public CheckpointTest {
 protected:
  std::string Write(std::int64_t step, float fill, int keep) {
    const auto path =
        WriteCheckpoint(files_, dir_, StateAt(step), Shards(fill), keep);
    EXPECT_TRUE(path.ok()) << path.status();
    return path.value_or("");
  }
  void Replace(const std::string& path, const std::string& text) {
    ASSERT_TRUE(base::WriteWholeFile(files_, path, text).ok());
  }
};

TEST_F(CheckpointFilesTest, OneStage) {
  const std::string path = Write(100, 1.5f, /*keep=*/3);
  EXPECT_EQ(path, dir_ + "/step-00000100");
  EXPECT_EQ(files_.List(path).value(),
            (Names{"model.safetensors", "model.safetensors.index.json",
                   "optimizer.safetensors", "trainer_state.json"}));
  EXPECT_EQ(
      base::ReadWholeFile(files_, path + "/model.safetensors.index.json", 1000)
          .value(),
      R"({
  "metadata": {
    "total_size": 32,
    "shards": 1,
    "model_sums": {
      "0.weight": "8540e9df30800000",
      "0.bias": "5685278e93000000"
    },
    "optimizer_sums": {
      "0.weight.momentum_buffer": "104dca7e30800000",
      "0.bias.momentum_buffer": "b9f2e46893000000"
    }
  },
  "weight_map": {
    "0.weight": "model.safetensors",
    "0.bias": "model.safetensors"
  }
}
)");
  const auto saved = Checkpoint::Open(files_, path);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->state().step, 100);
  EXPECT_EQ(saved->state().sampler, StateAt(100).sampler);
  EXPECT_EQ(saved->ModelNames(), (Names{"0.bias", "0.weight"}));
  EXPECT_EQ(saved->OptimizerNames(),
            (Names{"0.bias.momentum_buffer", "0.weight.momentum_buffer"}));
  EXPECT_EQ(FillOf(path), 1.5f);
}

TEST_F(CheckpointFilesTest, AShardPerStage) {
  // The middle stage has no parameters.
  const std::vector<CheckpointShard> shards = {
      Shard("0", 1.0f), CheckpointShard(), Shard("3", 2.0f)};
  const auto path = WriteCheckpoint(files_, dir_, StateAt(5), shards, 1);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(
      files_.List(*path).value(),
      (Names{"model-00001-of-00003.safetensors",
             "model-00002-of-00003.safetensors",
             "model-00003-of-00003.safetensors", "model.safetensors.index.json",
             "optimizer-00001-of-00003.safetensors",
             "optimizer-00002-of-00003.safetensors",
             "optimizer-00003-of-00003.safetensors", "trainer_state.json"}));
  const auto saved = Checkpoint::Open(files_, *path);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->ModelNames(),
            (Names{"0.bias", "0.weight", "3.bias", "3.weight"}));
  const nn::Tensor bias = Filled({2}, 0);
  ASSERT_TRUE(saved->ReadModel("3.bias", bias).ok());
  EXPECT_EQ(bias.data<float>()[1], 2.0f);
  ASSERT_TRUE(saved->ReadOptimizer("3.bias.momentum_buffer", bias).ok());
  EXPECT_EQ(bias.data<float>()[1], -2.0f);
}

TEST_F(CheckpointFilesTest, KeepsTheNewest) {
  for (int step = 1; step <= 5; ++step) Write(step, step, /*keep=*/2);
  EXPECT_EQ(Listed(), (Names{"step-00000004", "step-00000005"}));
  for (int step = 6; step <= 8; ++step) Write(step, step, /*keep=*/0);
  EXPECT_EQ(Listed().size(), 5u);
  EXPECT_EQ(FindLatestCheckpoint(files_, dir_).value(),
            dir_ + "/step-00000008");
}

TEST_F(CheckpointFilesTest, NeverRemovesTheOneJustWritten) {
  for (int step : {100, 200, 300}) Write(step, 1.0f, /*keep=*/3);
  Write(50, 2.0f, /*keep=*/2);
  EXPECT_EQ(Listed(), (Names{"step-00000050", "step-00000300"}));
}

TEST_F(CheckpointFilesTest, TheSameStepAgain) {
  Write(100, 1.0f, 3);
  Write(100, 2.0f, 3);
  EXPECT_EQ(Listed(), (Names{"step-00000100"}));
  EXPECT_EQ(FillOf(dir_ + "/step-00000100"), 2.0f);
}

TEST_F(CheckpointFilesTest, EqualStatesGiveEqualFiles) {
  const std::string a = Write(1, 1.0f, 0), b = Write(2, 1.0f, 0);
  for (const char* name : {"/model.safetensors", "/optimizer.safetensors"}) {
    EXPECT_EQ(base::ReadWholeFile(files_, a + name, 10000).value(),
              base::ReadWholeFile(files_, b + name, 10000).value());
  }
}

TEST_F(CheckpointFilesTest, UnfinishedOnesAreNotFoundAndGoAway) {
  Write(100, 1.0f, 3);
  for (const char* name :
       {"/step-00000200.tmp-1", "/step-00000900.tmp-1", "/step-12", "/notes"}) {
    ASSERT_TRUE(files_.CreateFolder(dir_ + name).ok());
  }
  EXPECT_EQ(FindLatestCheckpoint(files_, dir_).value(),
            dir_ + "/step-00000100");
  Write(300, 1.0f, 3);
  EXPECT_EQ(Listed(), (Names{"notes", "step-00000100", "step-00000300",
                             "step-00000900.tmp-1", "step-12"}))
      << "only unfinished ones of the past go";
}

TEST_F(CheckpointFilesTest, NothingThere) {
  EXPECT_EQ(
      FindLatestCheckpoint(files_, dir_).status(),
      absl::NotFoundError("no checkpoint in " + dir_ + "; check the path"));
  const std::string best = dir_ + "/best";
  EXPECT_EQ(FindLatestCheckpoint(files_, best).status(),
            absl::NotFoundError(
                "no checkpoint in " + best +
                "; only a run with keep_best keeps its best one there"));
  EXPECT_EQ(ListCheckpoints(files_, dir_).value(), Names{});
  ASSERT_TRUE(base::WriteWholeFile(files_, dir_, "a file").ok());
  EXPECT_EQ(FindLatestCheckpoint(files_, dir_).status().message(),
            "cannot list folder " + dir_ +
                ": Not a directory; something else has that name: use another "
                "path or remove it");
  EXPECT_EQ(WriteCheckpoint(files_, dir_, StateAt(1), Shards(1), 3)
                .status()
                .message(),
            "cannot create folder " + dir_ +
                ": Not a directory; something else has that name: use another "
                "path or remove it");
}

TEST_F(CheckpointFilesTest, DamagedFilesAreNamed) {
  const std::string path = Write(1, 1.0f, 3);
  auto error = [&](const char* file, const std::string& text) {
    const std::string at = absl::StrCat(path, "/", file);
    const std::string good = base::ReadWholeFile(files_, at, 10000).value();
    Replace(at, text);
    const absl::Status status = Checkpoint::Open(files_, path).status();
    Replace(at, good);
    return std::string(status.message());
  };
  EXPECT_EQ(error("trainer_state.json", "{"),
            path +
                "/trainer_state.json cannot be used: it is not valid JSON; "
                "use an earlier checkpoint");
  EXPECT_EQ(error("model.safetensors.index.json", "{}"),
            path +
                "/model.safetensors.index.json cannot be used: field "
                "\"weight_map\" is missing or not an object of texts; use an "
                "earlier checkpoint");
  EXPECT_EQ(error("model.safetensors.index.json",
                  R"({"metadata": {"shards": 1},
                      "weight_map": {"1.weight": "../model.safetensors"}})"),
            path +
                "/model.safetensors.index.json cannot be used: "
                "../model.safetensors has no tensor \"1.weight\"; use an "
                "earlier checkpoint");
  EXPECT_EQ(error("model.safetensors.index.json",
                  R"({"metadata": {"shards": 100000}, "weight_map": {}})"),
            path +
                "/model.safetensors.index.json cannot be used: it has 100000 "
                "shards; the limit is 99999; use an earlier checkpoint");
  EXPECT_EQ(error("optimizer.safetensors", "tiny"),
            path +
                "/optimizer.safetensors is not a whole safetensors file: "
                "it has only 4 bytes; restore it from a copy or use an "
                "earlier one");
  ASSERT_TRUE(Checkpoint::Open(files_, path).ok());
  ASSERT_TRUE(files_.RemoveAll(path + "/optimizer.safetensors").ok());
  EXPECT_EQ(Checkpoint::Open(files_, path).status().message(),
            path +
                " lacks optimizer.safetensors; restore it from a copy or use "
                "an earlier checkpoint");
}

TEST_F(CheckpointFilesTest, AnotherStepThanTheFoldersNameSays) {
  const std::string path = Write(100, 1.5f, /*keep=*/3);
  const std::string copy = dir_ + "/step-00000900";
  ASSERT_TRUE(files_.Rename(path, copy).ok());
  for (const char* slash : {"", "/"}) {
    EXPECT_EQ(
        Checkpoint::Open(files_, copy + slash).status(),
        absl::DataLossError(copy + " has the checkpoint of step 100; rename it "
                                   "to step-00000100, or move it away"));
  }
  // A folder whose name has no step may have any name.
  ASSERT_TRUE(files_.Rename(copy, dir_ + "/best").ok());
  EXPECT_EQ(FillOf(dir_ + "/best"), 1.5f);
}

// The index as save_pretrained() writes it, with and without the total size.
TEST_F(CheckpointFilesTest, AnIndexOfHuggingFace) {
  const std::string one = Write(1, 1.5f, 3) + "/";
  const std::string index = "model.safetensors.index.json";
  for (const char* metadata :
       {"", R"("metadata": {"total_size": 32},)", R"("metadata": {},)"}) {
    Replace(one + index, absl::StrCat("{", metadata, R"("weight_map": {
                "0.weight": "model.safetensors",
                "0.bias": "model.safetensors"}})"));
    EXPECT_EQ(FillOf(dir_ + "/step-00000001"), 1.5f) << metadata;
  }
  const std::string two =
      *WriteCheckpoint(files_, dir_, StateAt(2),
                       {Shard("0", 1.0f), Shard("3", 2.0f)}, /*keep=*/3) +
      "/";
  Replace(two + index, R"({"metadata": {"total_size": 64}, "weight_map": {
              "0.weight": "model-00001-of-00002.safetensors",
              "0.bias": "model-00001-of-00002.safetensors",
              "3.weight": "any-name.safetensors",
              "3.bias": "any-name.safetensors"}})");
  ASSERT_TRUE(files_
                  .Rename(two + "model-00002-of-00002.safetensors",
                          two + "any-name.safetensors")
                  .ok());
  const auto saved = Checkpoint::Open(files_, dir_ + "/step-00000002");
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->ModelNames(),
            (Names{"0.bias", "0.weight", "3.bias", "3.weight"}));
  EXPECT_EQ(saved->OptimizerNames().size(), 4u);
  ASSERT_TRUE(
      files_.RemoveAll(two + "optimizer-00001-of-00002.safetensors").ok());
  EXPECT_EQ(
      Checkpoint::Open(files_, dir_ + "/step-00000002").status().message(),
      dir_ +
          "/step-00000002 lacks optimizer-00001-of-00002.safetensors; "
          "restore it from a copy or use an earlier checkpoint");
  // Weights alone: the optimizer's states are missing, which is an error only
  // when a job is resumed.
  ASSERT_TRUE(
      files_.RemoveAll(two + "optimizer-00002-of-00002.safetensors").ok());
  EXPECT_EQ(Checkpoint::Open(files_, dir_ + "/step-00000002")->OptimizerNames(),
            Names{});
  Replace(two + index, R"({"weight_map": {"0.bias": "../a.safetensors"}})");
  EXPECT_EQ(
      Checkpoint::Open(files_, dir_ + "/step-00000002").status().message(),
      two + index +
          " cannot be used: \"../a.safetensors\" is not the name of a "
          "file beside it; use an earlier checkpoint");
}

TEST_F(CheckpointFilesTest, AModelInOneFileNeedsNoIndex) {
  const std::string one = Write(1, 1.5f, 3);
  ASSERT_TRUE(files_.RemoveAll(one + "/model.safetensors.index.json").ok());
  EXPECT_EQ(FillOf(one), 1.5f);
  EXPECT_EQ(Checkpoint::Open(files_, one)->OptimizerNames().size(), 2u);
  // Weights alone.
  ASSERT_TRUE(files_.RemoveAll(one + "/optimizer.safetensors").ok());
  EXPECT_EQ(Checkpoint::Open(files_, one)->ModelNames(),
            (Names{"0.bias", "0.weight"}));
  Replace(one + "/model.safetensors", "tiny");
  EXPECT_EQ(
      Checkpoint::Open(files_, one).status(),
      absl::DataLossError(one + "/model.safetensors is not a whole safetensors "
                                "file: it has only 4 bytes; restore it from a "
                                "copy or use an earlier one"));
  ASSERT_TRUE(files_.RemoveAll(one + "/model.safetensors").ok());
  EXPECT_EQ(
      Checkpoint::Open(files_, one).status(),
      absl::NotFoundError(
          one + " has no model.safetensors.index.json, nor a "
                "model.safetensors; restore it from a copy or use an earlier "
                "checkpoint"));
}

TEST_F(CheckpointFilesTest, ShardsOfAModelNeedTheirIndex) {
  const std::string two =
      *WriteCheckpoint(files_, dir_, StateAt(2),
                       {Shard("0", 1.0f), Shard("3", 2.0f)}, /*keep=*/3);
  ASSERT_TRUE(files_.RemoveAll(two + "/model.safetensors.index.json").ok());
  EXPECT_EQ(
      Checkpoint::Open(files_, two).status(),
      absl::NotFoundError(
          two + " has no model.safetensors.index.json, without which shards "
                "of a model cannot be read; restore it from a copy or use an "
                "earlier checkpoint"));
}

TEST(LayoutTest, NamesOfShards) {
  EXPECT_EQ(ParseShardCount("model", "model.safetensors"), 1);
  EXPECT_EQ(ParseShardCount("model", "model-00002-of-00012.safetensors"), 12);
  for (const char* name :
       {"", "model", "model-.safetensors", "model-00001.safetensors",
        "model-00000-of-00002.safetensors", "model-00001-of-00001.safetensors",
        "model-00001-of-00002.safetensors2", "model-1-of-2.safetensors",
        "optimizer.safetensors", "model-00001-of-000002.safetensors"}) {
    EXPECT_EQ(ParseShardCount("model", name), 0) << name;
  }
}

TEST_F(CheckpointFilesTest, MissingTensorsAndNamesTwice) {
  const auto saved = Checkpoint::Open(files_, Write(1, 1.0f, 3));
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->ReadModel("9.weight", Filled({1}, 0)).message(),
            dir_ +
                "/step-00000001 has no tensor \"9.weight\", so it is of "
                "another model or optimizer; give it to those that it was "
                "saved from");
  EXPECT_EQ(WriteCheckpoint(files_, dir_, StateAt(2),
                            {Shard("0", 1.0f), Shard("0", 1.0f)}, 3)
                .status(),
            absl::InvalidArgumentError(
                "two stages have a tensor \"0.weight\"; "
                "give modules and buffers names of their own"));
}

// Any bit of any tensor, on any shard: the error names file and tensor.
TEST_F(CheckpointFilesTest, AFlippedBitIsFound) {
  const std::vector<CheckpointShard> shards = {Shard("0", 1.0f),
                                               Shard("1", 2.0f)};
  const std::string path =
      WriteCheckpoint(files_, dir_, StateAt(5), shards, 1).value();
  const auto read = [&](bool optimizer, const std::string& name,
                        const nn::Shape& shape) {
    const Checkpoint saved = Checkpoint::Open(files_, path).value();
    return optimizer ? saved.ReadOptimizer(name, Filled(shape, 0))
                     : saved.ReadModel(name, Filled(shape, 0));
  };
  for (const bool optimizer : {false, true}) {
    const std::string file =
        absl::StrCat(path, optimizer ? "/optimizer" : "/model",
                     "-00002-of-00002.safetensors");
    const std::string bias = optimizer ? "1.bias.momentum_buffer" : "1.bias";
    const std::string weight =
        optimizer ? "1.weight.momentum_buffer" : "1.weight";
    const std::string good = base::ReadWholeFile(files_, file, 10000).value();
    // The data end with the weight, behind the bias: 6 and 2 floats.
    for (const int back : {1, 23}) {
      std::string bad = good;
      bad[bad.size() - back] ^= 1;
      Replace(file, bad);
      EXPECT_EQ(read(optimizer, weight, {2, 3}),
                absl::DataLossError(absl::StrCat(
                    file, " cannot be used: the values of tensor \"", weight,
                    "\" are not those that were written; use an earlier "
                    "checkpoint")));
      EXPECT_TRUE(read(optimizer, bias, {2}).ok());
    }
    Replace(file, good);
    EXPECT_TRUE(read(optimizer, weight, {2, 3}).ok());
  }
}

// An earlier version wrote hashes in place of checksums.
TEST_F(CheckpointFilesTest, HashesOfAnEarlierVersionAreCompared) {
  const std::string path = Write(100, 1.5f, /*keep=*/3);
  for (const bool is_right : {true, false}) {
    Replace(path + "/model.safetensors.index.json",
            absl::StrCat(R"({"metadata": {"total_size": 32, "shards": 1,
                "model_hashes": {"0.weight": "83e363fe6917c18)",
                         is_right ? "d" : "c", R"("},
                "optimizer_hashes": {}},
              "weight_map": {"0.weight": "model.safetensors",
                             "0.bias": "model.safetensors"}})"));
    EXPECT_EQ(FillOf(path), is_right ? 1.5f : -1);
  }
}

// Earlier versions, and other programs, write no hashes.
TEST_F(CheckpointFilesTest, AnIndexWithoutHashesIsRead) {
  const std::string path = Write(100, 1.5f, /*keep=*/3);
  Replace(path + "/model.safetensors.index.json",
          R"({"metadata": {"total_size": 32, "shards": 1},
              "weight_map": {"0.weight": "model.safetensors",
                             "0.bias": "model.safetensors"}})");
  EXPECT_EQ(FillOf(path), 1.5f);
}

}  // namespace
}  // namespace troupe::actors

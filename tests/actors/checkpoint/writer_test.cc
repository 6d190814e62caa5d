// Tests shards that are written one by one, in any order, and published by one
// writer.

#include "actors/checkpoint/writer.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/actors/checkpoint/checkpoint_fixture.h"

namespace troupe::actors {
namespace {

using Names = std::vector<std::string>;

class WriterTest : public CheckpointTest {
 protected:
  std::string Create(std::int64_t step) {
    const auto folder = CreateCheckpointFolder(files_, dir_, step);
    EXPECT_TRUE(folder.ok()) << folder.status();
    return folder.value_or("");
  }
  // Writes shard `shard` of two: layer "0" or "1".
  ShardSummary Write(const std::string& folder, int shard) {
    const auto summary = WriteCheckpointShard(
        files_, folder, shard, /*shards=*/2,
        Shard(std::to_string(shard), /*fill=*/1.0f + shard));
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.value_or(ShardSummary());
  }
};

TEST_F(WriterTest, ASummarySaysWhatTheIndexNeeds) {
  const ShardSummary summary = Write(Create(7), 1);
  EXPECT_EQ(summary.shard, 1);
  EXPECT_EQ(summary.bytes, 32u);
  EXPECT_EQ(summary.files, (Names{"model-00002-of-00002.safetensors",
                                  "optimizer-00002-of-00002.safetensors"}));
  EXPECT_EQ(summary.tensors, (Names{"1.weight", "1.bias"}));
}

TEST_F(WriterTest, TheOrderOfShardsDoesNotMatter) {
  std::string indices[2];
  for (int first : {0, 1}) {
    const std::string folder = Create(10 + first);
    EXPECT_TRUE(FindLatestCheckpoint(files_, dir_).status().code() ==
                    absl::StatusCode::kNotFound ||
                first == 1)
        << "a folder without its name is no checkpoint";
    const ShardSummary a = Write(folder, first), b = Write(folder, 1 - first);
    const auto path =
        PublishCheckpoint(files_, dir_, folder, StateAt(10 + first), {a, b}, 0);
    ASSERT_TRUE(path.ok()) << path.status();
    indices[first] = base::ReadWholeFile(
                         files_, *path + "/model.safetensors.index.json", 10000)
                         .value();
    const auto saved = Checkpoint::Open(files_, *path);
    ASSERT_TRUE(saved.ok()) << saved.status();
    EXPECT_EQ(saved->ModelNames(),
              (Names{"0.bias", "0.weight", "1.bias", "1.weight"}));
  }
  EXPECT_EQ(indices[0], indices[1]);
}

TEST_F(WriterTest, AMissingShardIsNamedAndNothingIsLeft) {
  const std::string folder = Create(5);
  const ShardSummary second = Write(folder, 1);
  const absl::Status status =
      PublishCheckpoint(files_, dir_, folder, StateAt(5), {second}, 3).status();
  EXPECT_EQ(status, absl::NotFoundError(
                        "shard 1 of " + folder +
                        " is missing, since no process has written it; put "
                        "the folder where all processes share it"));
  EXPECT_EQ(Listed(), Names{});
}

TEST_F(WriterTest, AMissingFileIsNamedAndTheOldOneStays) {
  ASSERT_TRUE(WriteCheckpoint(files_, dir_, StateAt(4), Shards(4), 3).ok());
  const std::string folder = Create(5);
  const ShardSummary a = Write(folder, 0), b = Write(folder, 1);
  const std::string lost = folder + "/" + b.files[0];
  ASSERT_TRUE(files_.RemoveAll(lost).ok());
  EXPECT_EQ(
      PublishCheckpoint(files_, dir_, folder, StateAt(5), {a, b}, 3).status(),
      absl::NotFoundError(
          lost + " is missing; let all ranks write to one folder, on a disk "
                 "that their hosts share"));
  EXPECT_EQ(Listed(), Names{"step-00000004"});
  EXPECT_EQ(FillOf(dir_ + "/step-00000004"), 4.0f);
}

TEST_F(WriterTest, TwoShardsWithATensorOfOneName) {
  const std::string folder = Create(5);
  const ShardSummary a = Write(folder, 0);
  ShardSummary b = Write(folder, 1);
  b.tensors[1] = "0.weight";
  EXPECT_EQ(
      PublishCheckpoint(files_, dir_, folder, StateAt(5), {a, b}, 3).status(),
      absl::InvalidArgumentError(
          "two stages have a tensor \"0.weight\"; "
          "give modules and buffers names of their own"));
}

class SeveralWritersTest : public WriterTest {
 protected:
  // Returns the part of one of two writers: the second one has all but the
  // first element of each weight, the first one the rest.
  CheckpointShard PartOf(int writer) {
    CheckpointShard shard = Shard("0", /*fill=*/3);
    for (auto* tensors : {&shard.model, &shard.optimizer}) {
      nn::TensorPart& weight = (*tensors)[0];
      weight.ranges = {{writer, writer, writer == 0 ? 1 : 5}};
      if (writer == 1) (*tensors)[1].Drop();
    }
    return shard;
  }
  ShardSummary WritePart(const std::string& folder, int writer) {
    const auto summary =
        WriteCheckpointShard(files_, folder, 0, 1, PartOf(writer), {writer, 2});
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.value_or(ShardSummary());
  }
  absl::Status Publish(const std::string& folder,
                       const std::vector<ShardSummary>& parts) {
    return PublishCheckpoint(files_, dir_, folder, StateAt(5), parts, 3)
        .status();
  }
};

TEST_F(SeveralWritersTest, MakeTheFilesOfOne) {
  ASSERT_TRUE(WriteCheckpoint(files_, dir_, StateAt(4), Shards(3), 3).ok());
  const std::string folder = Create(5);
  const ShardSummary b = WritePart(folder, 1), a = WritePart(folder, 0);
  ASSERT_EQ(Publish(folder, {b, a}), absl::OkStatus());
  EXPECT_EQ(FillOf(dir_ + "/step-00000005"), 3.0f);
  const Names names = files_.List(dir_ + "/step-00000005").value();
  EXPECT_EQ(names.size(), 4u);
  for (const std::string& name : names) {
    if (name == "trainer_state.json") continue;  // it has the step
    EXPECT_EQ(
        base::ReadWholeFile(files_, dir_ + "/step-00000005/" + name, 1 << 16),
        base::ReadWholeFile(files_, dir_ + "/step-00000004/" + name, 1 << 16))
        << name;
  }
}

TEST_F(SeveralWritersTest, OneThatIsMissingIsNamed) {
  const std::string folder = Create(5);
  const ShardSummary a = WritePart(folder, 0), b = WritePart(folder, 1);
  for (const ShardSummary& alone : {a, b}) {
    EXPECT_EQ(Publish(folder, {alone}),
              absl::NotFoundError(
                  "shard 1 of " + folder +
                  " has been written by 1 of its 2 writers; put the folder "
                  "where all processes share it"));
  }
  EXPECT_EQ(Listed(), Names{});
}

TEST_F(SeveralWritersTest, ThatDisagreeMakeNoCheckpoint) {
  const std::string folder = Create(5);
  const ShardSummary a = WritePart(folder, 0);
  ShardSummary b = WritePart(folder, 1);
  ++b.layout;
  EXPECT_EQ(Publish(folder, {a, b}),
            absl::DataLossError("writer 1 of shard 1 of " + folder +
                                " had other tensors than writer 0; start all "
                                "processes with one program and one "
                                "configuration"));
  --b.layout, b.written_bytes -= 4;
  EXPECT_EQ(Publish(folder, {a, b}).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Listed(), Names{});
}

class BestTest : public WriterTest {
 protected:
  // Writes the checkpoint of `step`, of a run whose best step is `best`. Unless
  // `crash` is negative, the writer crashes `crash` changes after the shards.
  absl::Status Save(std::int64_t step, std::int64_t best, int crash = -1) {
    const std::string folder = Create(step);
    const ShardSummary a = Write(folder, 0), b = Write(folder, 1);
    if (crash >= 0) files_.CrashAt(files_.changes() + crash);
    TrainerState state = StateAt(step);
    state.evaluations.emplace();
    state.evaluations->best_step = best;
    const absl::Status status =
        PublishCheckpoint(files_, dir_, folder, state, {a, b}, /*keep=*/1,
                          /*mark_best=*/true)
            .status();
    files_.CrashAt(-1);
    return status;
  }
};

TEST_F(BestTest, StaysUntilThereIsABetterOne) {
  ASSERT_TRUE(Save(1, 1).ok());
  ASSERT_TRUE(Save(2, 1).ok());
  ASSERT_TRUE(Save(3, 1).ok());
  EXPECT_EQ(Listed(), (Names{"best", "step-00000001", "step-00000003"}));
  EXPECT_EQ(FindBestCheckpoint(files_, dir_), 1);
  EXPECT_EQ(Checkpoint::Open(files_, dir_ + "/best")->state().step, 1);
  ASSERT_TRUE(Save(4, 4).ok());
  EXPECT_EQ(Listed(), (Names{"best", "step-00000004"}));
  EXPECT_EQ(FindBestCheckpoint(files_, dir_), 4);
}

// Wherever a writer crashes, "best" exists and is whole.
TEST_F(BestTest, ACrashLeavesOneOfTheTwo) {
  ASSERT_TRUE(Save(1, 1).ok());
  for (int change = 0;; ++change) {
    const bool done = Save(2, 2, change).ok();
    const auto best = FindBestCheckpoint(files_, dir_);
    ASSERT_TRUE(best) << change;
    EXPECT_EQ(Checkpoint::Open(files_, dir_ + "/best")->state().step, *best)
        << change;
    if (done) break;
  }
  EXPECT_EQ(FindBestCheckpoint(files_, dir_), 2);
}

TEST_F(BestTest, ALinkToWhatIsGoneIsDropped) {
  ASSERT_TRUE(Save(1, 1).ok());
  ASSERT_TRUE(DropStaleBest(files_, dir_).ok());
  EXPECT_TRUE(FindBestCheckpoint(files_, dir_));
  ASSERT_TRUE(RemoveCheckpoint(files_, dir_ + "/step-00000001").ok());
  ASSERT_TRUE(DropStaleBest(files_, dir_).ok());
  EXPECT_EQ(Listed(), Names{});
}

TEST_F(WriterTest, AFolderOfACrashedWriterIsEmptiedFirst) {
  const std::string folder = Create(5);
  Write(folder, 1);
  EXPECT_EQ(Create(5), folder);
  EXPECT_EQ(files_.List(folder).value(), Names{});
  RemoveCheckpointFolder(files_, folder);
  EXPECT_EQ(Listed(), Names{});
}

}  // namespace
}  // namespace troupe::actors

// Tests a full disk, and a crash, at every single change to the disk: whole
// checkpoints stay whole, and the next write succeeds.

#include <errno.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "gtest/gtest.h"
#include "tests/actors/checkpoint/checkpoint_fixture.h"
#include "tests/base/faulty_file_system.h"

namespace troupe::actors {
namespace {

using Names = std::vector<std::string>;
using base::FaultyFileSystem;

class CheckpointFaultsTest : public CheckpointTest {
 protected:
  // Returns the number of changes that one write makes beside one checkpoint.
  int ChangesOfAWrite(std::int64_t step) {
    FaultyFileSystem counted;
    Prepare();
    EXPECT_TRUE(
        WriteCheckpoint(counted, dir_, StateAt(step), Shards(2), 1).ok());
    return counted.changes();
  }
  // Makes the folder hold step 100 alone, filled with 1.
  void Prepare() {
    ASSERT_TRUE(files_.RemoveAll(dir_).ok());
    ASSERT_TRUE(WriteCheckpoint(files_, dir_, StateAt(100), Shards(1), 1).ok());
  }
};

TEST_F(CheckpointFaultsTest, EverythingIsOnTheDiskBeforeItHasItsName) {
  Prepare();
  FaultyFileSystem counted;
  ASSERT_TRUE(WriteCheckpoint(counted, dir_, StateAt(200), Shards(2), 1).ok());
  Names log;
  for (std::string line : counted.log()) {
    // The process's number differs from run to run.
    const std::size_t pid = line.find(".tmp-");
    if (pid != std::string::npos) {
      const std::size_t end = line.find('/', pid);
      line.replace(pid, (end == std::string::npos ? line.size() : end) - pid,
                   ".tmp");
    }
    line.replace(line.find(dir_), dir_.size(), "DIR");
    if (log.empty() || log.back() != line) log.push_back(line);
  }
  const std::string tmp = "DIR/step-00000200.tmp";
  Names want = {"create folder DIR", "remove " + tmp, "create folder " + tmp};
  for (const char* file :
       {"model.safetensors", "optimizer.safetensors",
        "model.safetensors.index.json", "trainer_state.json"}) {
    for (const char* verb : {"create ", "append ", "sync ", "close "}) {
      want.push_back(absl::StrCat(verb, tmp, "/", file));
    }
  }
  for (const char* line :
       {"sync folder DIR/step-00000200.tmp", "rename to DIR/step-00000200",
        "sync folder DIR", "rename to DIR/step-00000100.tmp",
        "remove DIR/step-00000100.tmp"}) {
    want.push_back(line);
  }
  EXPECT_EQ(log, want);
}

TEST_F(CheckpointFaultsTest, DiskFullAtEveryWrite) {
  const int changes = ChangesOfAWrite(200);
  ASSERT_GT(changes, 15);
  for (int change = 0; change < changes; ++change) {
    SCOPED_TRACE(absl::StrCat("change ", change));
    Prepare();
    FaultyFileSystem faulty;
    faulty.FailAt(change, ENOSPC);
    const auto path = WriteCheckpoint(faulty, dir_, StateAt(200), Shards(2), 1);
    EXPECT_TRUE(faulty.failed());
    ASSERT_FALSE(path.ok());
    EXPECT_EQ(path.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(absl::StrContains(path.status().message(), dir_));
    EXPECT_TRUE(absl::EndsWith(path.status().message(),
                               "free space there or write to another disk"));
    // Step 100 is whole, unless step 200 has its name already.
    const auto latest = FindLatestCheckpoint(files_, dir_);
    ASSERT_TRUE(latest.ok());
    EXPECT_EQ(FillOf(*latest),
              *latest == dir_ + "/step-00000100" ? 1.0f : 2.0f);
    // With space again, a write succeeds, and no unfinished file is left.
    ASSERT_TRUE(WriteCheckpoint(files_, dir_, StateAt(300), Shards(3), 1).ok());
    EXPECT_EQ(Listed(), Names{"step-00000300"});
  }
}

TEST_F(CheckpointFaultsTest, AFullDiskLeavesNothingUnfinished) {
  Prepare();
  FaultyFileSystem faulty;
  faulty.FailAt(4, ENOSPC);  // the first bytes of model.safetensors
  ASSERT_FALSE(WriteCheckpoint(faulty, dir_, StateAt(200), Shards(2), 1).ok());
  EXPECT_EQ(Listed(), Names{"step-00000100"});
}

// After a crash the writer cleans up nothing.
TEST_F(CheckpointFaultsTest, CrashAtEveryChange) {
  const int changes = ChangesOfAWrite(200);
  for (int change = 0; change < changes; ++change) {
    SCOPED_TRACE(absl::StrCat("change ", change));
    Prepare();
    FaultyFileSystem crashed;
    crashed.CrashAt(change);
    EXPECT_FALSE(
        WriteCheckpoint(crashed, dir_, StateAt(200), Shards(2), 1).ok());
    const auto latest = FindLatestCheckpoint(files_, dir_);
    ASSERT_TRUE(latest.ok());
    EXPECT_EQ(FillOf(*latest),
              *latest == dir_ + "/step-00000100" ? 1.0f : 2.0f);
    ASSERT_TRUE(WriteCheckpoint(files_, dir_, StateAt(200), Shards(4), 1).ok());
    EXPECT_EQ(Listed(), Names{"step-00000200"});
    EXPECT_EQ(FillOf(dir_ + "/step-00000200"), 4.0f);
  }
}

// A step that is written again holds either the old or the new tensors.
TEST_F(CheckpointFaultsTest, CrashWhileReplacing) {
  const int changes = ChangesOfAWrite(100);
  for (int change = 0; change < changes; ++change) {
    SCOPED_TRACE(absl::StrCat("change ", change));
    Prepare();
    FaultyFileSystem crashed;
    crashed.CrashAt(change);
    EXPECT_FALSE(
        WriteCheckpoint(crashed, dir_, StateAt(100), Shards(2), 1).ok());
    const float fill = FillOf(dir_ + "/step-00000100");
    EXPECT_TRUE(fill == 1.0f || fill == 2.0f) << fill;
  }
}

TEST_F(CheckpointFaultsTest, AReadOnlyDisk) {
  FaultyFileSystem faulty;
  faulty.FailAt(0, EROFS);
  EXPECT_EQ(WriteCheckpoint(faulty, dir_, StateAt(1), Shards(1), 1).status(),
            absl::PermissionDeniedError(
                "cannot create folder " + dir_ +
                ": Read-only file system; use a path on a disk that may be "
                "written"));
}

}  // namespace
}  // namespace troupe::actors

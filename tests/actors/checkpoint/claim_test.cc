#include "actors/checkpoint/claim.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/actors/checkpoint/checkpoint_fixture.h"

namespace troupe::actors {
namespace {

using Names = std::vector<std::string>;

class ClaimTest : public CheckpointTest {
 protected:
  void Make(const std::string& name) {
    ASSERT_TRUE(files_.CreateFolder(dir_ + "/" + name).ok());
  }
  void Write(std::int64_t step, float fill) {
    ASSERT_TRUE(
        WriteCheckpoint(files_, dir_, StateAt(step), Shards(fill), 3).ok());
  }
};

TEST_F(ClaimTest, OneRunHasIt) {
  auto first = ClaimCheckpoints(files_, dir_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_NE(*first, nullptr);
  const absl::Status second = ClaimCheckpoints(files_, dir_).status();
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
  EXPECT_TRUE(absl::StartsWith(
      second.message(),
      absl::StrCat("another run writes checkpoints into ", dir_,
                   ": cannot lock ", dir_, "/.lock: it is held by process ",
                   getpid(), " on ")))
      << second;
  EXPECT_TRUE(absl::StrContains(second.message(), ", since 2")) << second;
  *first = nullptr;
  EXPECT_TRUE(ClaimCheckpoints(files_, dir_).ok());
}

TEST_F(ClaimTest, OtherProcessesKnowTheFolderByItsMark) {
  ASSERT_TRUE(ClaimCheckpoints(files_, dir_).ok());
  const absl::StatusOr<std::string> mark = MarkFolder(files_, dir_);
  ASSERT_TRUE(mark.ok()) << mark.status();
  EXPECT_EQ(CheckMark(files_, dir_, *mark), absl::OkStatus());
  const std::string elsewhere = dir_ + "-elsewhere";
  const auto expect_other = [&](const char* why) {
    const absl::Status status = CheckMark(files_, elsewhere, *mark);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_TRUE(absl::StartsWith(
        status.message(),
        absl::StrCat("process 0 has just written ", elsewhere, "/.job, and ",
                     why, "; give all processes one folder")))
        << status;
  };
  expect_other("it is not there for this process");  // nor is the folder
  ASSERT_TRUE(base::CreateFolderOnDisk(files_, elsewhere).ok());
  expect_other("it is not there for this process");
  ASSERT_TRUE(
      base::WriteWholeFile(files_, elsewhere + "/.job", "another\n").ok());
  expect_other("it is of another job here");
  ASSERT_TRUE(files_.RemoveAll(elsewhere + "/.job").ok());
  ASSERT_TRUE(base::CreateFolderOnDisk(files_, elsewhere + "/.job").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckMark(files_, elsewhere, *mark)));
  ASSERT_TRUE(files_.RemoveAll(elsewhere).ok());
  // The mark of the next job in the folder is another one.
  ASSERT_TRUE(base::WriteWholeFile(files_, dir_ + "/.job", "another\n").ok());
  EXPECT_FALSE(CheckMark(files_, dir_, *mark).ok());
}

TEST_F(ClaimTest, TheHolderRemovesWhatIsUnfinished) {
  Write(100, 1.0f);
  Write(900, 9.0f);
  for (const char* name : {"step-00000200.tmp-1", "step-00000900.tmp-22",
                           "step-00000900.tmp-22.aside", "notes", "step-12"}) {
    Make(name);
  }
  auto held = ClaimCheckpoints(files_, dir_);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(Listed(), (Names{".lock", "notes", "step-00000100", "step-00000900",
                             "step-12"}));
  EXPECT_EQ(FillOf(dir_ + "/step-00000900"), 9.0f);
  // An unfinished checkpoint stays while another run may be writing it.
  Make("step-00000300.tmp-1");
  EXPECT_FALSE(ClaimCheckpoints(files_, dir_).ok());
  EXPECT_TRUE(files_.Exists(dir_ + "/step-00000300.tmp-1"));
}

// A replacement by two renames has crashed between them.
TEST_F(ClaimTest, WhatWasPutAsideComesBack) {
  Write(100, 1.0f);
  ASSERT_TRUE(
      files_
          .Rename(dir_ + "/step-00000100", dir_ + "/step-00000100.tmp-1.aside")
          .ok());
  Make("step-00000100.tmp-1");
  ASSERT_TRUE(ClaimCheckpoints(files_, dir_).ok());
  EXPECT_EQ(Listed(), (Names{".lock", "step-00000100"}));
  EXPECT_EQ(FillOf(dir_ + "/step-00000100"), 1.0f);
}

class NoLocks : public base::PosixFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<base::FileLock>> Lock(
      const std::string&, absl::string_view) override {
    return absl::UnimplementedError("no locks here");
  }
};

TEST_F(ClaimTest, WithoutLocksNothingIsRemoved) {
  Make("step-00000200.tmp-1");
  NoLocks files;
  const auto claim = ClaimCheckpoints(files, dir_);
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(*claim, nullptr);
  EXPECT_EQ(Listed(), Names{"step-00000200.tmp-1"});
}

TEST_F(ClaimTest, AFolderThatCannotBeWritten) {
  files_.FailAt(files_.changes() + 2, EACCES);  // create, sync, lock
  EXPECT_EQ(ClaimCheckpoints(files_, dir_).status().message(),
            "cannot lock " + dir_ +
                "/.lock: Permission denied; change its permissions or use "
                "another path");
}

}  // namespace
}  // namespace troupe::actors

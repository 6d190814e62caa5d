#include "actors/setup/checkpoint_folder.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

CheckpointOptions In(const std::string& name) {
  CheckpointOptions options;
  options.dir = testing::TempDir() + name;
  return options;
}

TEST(CheckpointFolderTest, IsLockedOnce) {
  CheckpointFolder folder(In("locked"));
  ASSERT_TRUE(folder.Lock().ok());
  EXPECT_TRUE(folder.Lock().ok()) << "it has the lock";
  CheckpointFolder other(In("locked"));
  EXPECT_EQ(other.Lock().code(), absl::StatusCode::kUnavailable);
  folder = CheckpointFolder();
  EXPECT_TRUE(other.Lock().ok()) << "the first has released it";
}

TEST(CheckpointFolderTest, HasTheMarkOfItsJob) {
  CheckpointFolder folder(In("marked"));
  ASSERT_TRUE(folder.Lock().ok());
  EXPECT_EQ(folder.mark(), "");
  ASSERT_TRUE(folder.SetMark().ok());
  EXPECT_NE(folder.mark(), "");
  EXPECT_TRUE(CheckpointFolder(In("marked")).Check(folder.mark()).ok());
  EXPECT_EQ(CheckpointFolder(In("elsewhere")).Check(folder.mark()).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(CheckpointFolder(In("elsewhere")).Check("").ok())
      << "process 0 has no folder";
}

TEST(CheckpointFolderTest, AJobThatSavesNothingHasNone) {
  CheckpointFolder none;
  EXPECT_TRUE(none.Lock().ok());
  EXPECT_TRUE(none.SetMark().ok());
  EXPECT_EQ(none.mark(), "");
  EXPECT_TRUE(none.Check("the mark of a job").ok());
}

}  // namespace
}  // namespace troupe::actors

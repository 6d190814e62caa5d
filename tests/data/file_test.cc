#include "data/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::HasSubstr;

TEST(FileTest, ReadsAWholeFile) {
  const std::string folder = MakeTempFolder();
  const Bytes bytes = {1, 2, 0, 255};
  EXPECT_EQ(*ReadFile(WriteFile(folder, "a", bytes), 4), bytes);
  EXPECT_EQ(*ReadFile(WriteFile(folder, "empty", {}), 0), Bytes());
}

TEST(FileTest, NamesAMissingFile) {
  const std::string path = JoinPath(MakeTempFolder(), "nothing");
  const absl::Status status = ReadFile(path, 10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  EXPECT_FALSE(FileExists(path));
}

TEST(FileTest, RefusesFoldersPipesAndLongFiles) {
  const std::string folder = MakeTempFolder();
  EXPECT_EQ(ReadFile(folder, 10).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const std::string pipe = JoinPath(folder, "pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadFile(pipe, 10).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const std::string path = WriteFile(folder, "long", Bytes(11));
  EXPECT_EQ(ReadFile(path, 10).status().message(),
            path + ": has 11 bytes, more than the limit of 10");
}

TEST(FileTest, SaysThatAFileMayNotBeRead) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::string path = WriteFile(MakeTempFolder(), "secret", {1});
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  EXPECT_EQ(ReadFile(path, 10).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(FileTest, JoinsPaths) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
}

}  // namespace
}  // namespace troupe::data

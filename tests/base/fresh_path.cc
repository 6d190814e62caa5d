#include "tests/base/fresh_path.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"

namespace troupe::base {

std::string FreshPath() {
  // The name of a parameterized test contains slashes.
  const std::string path = absl::StrCat(
      testing::TempDir(), "/",
      absl::StrReplaceAll(
          testing::UnitTest::GetInstance()->current_test_info()->name(),
          {{"/", "_"}}));
  EXPECT_EQ(PosixFileSystem().RemoveAll(path), absl::OkStatus());
  return path;
}

}  // namespace troupe::base

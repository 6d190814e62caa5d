#include "actors/launchers/slurm_lists.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

TEST(SlurmListsTest, TheFirstHost) {
  EXPECT_EQ(*FirstHost("n1"), "n1");
  EXPECT_EQ(*FirstHost("n1,n2"), "n1");
  EXPECT_EQ(*FirstHost("n[1-2]"), "n1");
  EXPECT_EQ(*FirstHost("n[01-04,9],m3"), "n01");
  EXPECT_EQ(*FirstHost("n[9,01-04],m3"), "n9");
  EXPECT_EQ(*FirstHost("rack[0-1]n[2-3]-ib"), "rack0n2-ib");
  EXPECT_EQ(*FirstHost("127.0.0.[1-2]"), "127.0.0.1");
}

TEST(SlurmListsTest, WhatIsNoListOfHosts) {
  for (const std::string text : {"", ",n1", "n[", "n[]", "n[1", "[,1]"}) {
    EXPECT_EQ(
        FirstHost(text).status(),
        absl::InvalidArgumentError(absl::StrCat(
            "\"", text,
            "\" is no list of Slurm's hosts; write it as n[01-04,9],m3")));
  }
}

TEST(SlurmListsTest, TasksOfANode) {
  EXPECT_EQ(*TasksOnNode("1", 0), 1);
  EXPECT_EQ(*TasksOnNode("1(x2)", 1), 1);
  EXPECT_EQ(*TasksOnNode("2(x3),1", 2), 2);
  EXPECT_EQ(*TasksOnNode("2(x3),1", 3), 1);
  EXPECT_EQ(*TasksOnNode("2,3(x2),1", 1), 3);
}

TEST(SlurmListsTest, WhatIsNoListOfCounts) {
  for (const std::string text : {"", "x", "0", "1(x", "1(xy)", "1,,2"}) {
    EXPECT_EQ(TasksOnNode(text, 1).status(),
              absl::InvalidArgumentError(absl::StrCat(
                  "\"", text,
                  "\" is no list of counts of Slurm's; write it as 2(x3),1")));
  }
  for (const std::string text : {"2", "1(x-1)", "1(x2000000)"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(TasksOnNode(text, 2).status())) << text;
  }
}

}  // namespace
}  // namespace troupe::actors

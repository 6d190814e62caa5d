#include "base/edit_distance.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::base {
namespace {

TEST(EditDistanceTest, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("abc", "abc"), 0);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("sitting", "kitten"), 3);
}

TEST(EditDistanceTest, NearestNamesComeInOrder) {
  using Names = std::vector<std::string>;
  const Names names = {"conv.bias", "fc.bias", "fc.weight"};
  EXPECT_EQ(NearestNames("fc.wieght", names, 1), Names({"fc.weight"}));
  EXPECT_EQ(NearestNames("c.bias", names, 2), Names({"fc.bias", "conv.bias"}));
  EXPECT_EQ(NearestNames("x", {}, 2), Names());
}

}  // namespace
}  // namespace troupe::base

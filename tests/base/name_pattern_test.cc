#include "base/name_pattern.h"

#include "gtest/gtest.h"

namespace troupe::base {
namespace {

TEST(NamePatternTest, Matches) {
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("*.bias", "features.0.bias"));
  EXPECT_TRUE(MatchesPattern("?.weight", "0.weight"));
  EXPECT_TRUE(MatchesPattern("*a*b", "aabab"));
  EXPECT_FALSE(MatchesPattern("?.weight", "10.weight"));
  EXPECT_FALSE(MatchesPattern("*.bias", "0.bias2"));
  EXPECT_FALSE(MatchesPattern("", "x"));
}

}  // namespace
}  // namespace troupe::base

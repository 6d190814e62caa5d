#include "base/xx_hash.h"

#include <cstdint>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace troupe::base {
namespace {

std::uint64_t HashOfText(const std::string& text, std::uint64_t seed = 0) {
  return XxHash64(text.data(), text.size(), seed);
}

// Expected values are those that tests of other implementations have.
TEST(XxHashTest, HasThePublishedValues) {
  EXPECT_EQ(HashOfText(""), 0xef46db3751d8e999u);
  EXPECT_EQ(HashOfText("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(HashOfText("abc"), 0x44bc2cf5ad770999u);
  EXPECT_EQ(HashOfText("Nobody inspects the spammish repetition"),
            0xfbcea83c8a378bf1u);
}

TEST(XxHashTest, AnyBitCountsAtAnyPlace) {
  std::set<std::uint64_t> seen;
  int texts = 0;
  for (int size = 0; size < 80; ++size) {
    std::string text(static_cast<std::size_t>(size), 'x');
    seen.insert(HashOfText(text));
    ++texts;
    for (char& byte : text) {
      byte ^= 0x80;
      seen.insert(HashOfText(text));
      byte ^= 0x80;
      ++texts;
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(texts));
}

TEST(XxHashTest, ASeedIsAnotherHash) {
  EXPECT_NE(HashOfText("abc", 1), HashOfText("abc", 2));
}

}  // namespace
}  // namespace troupe::base

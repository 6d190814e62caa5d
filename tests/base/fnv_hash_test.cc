#include "base/fnv_hash.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe::base {
namespace {

std::uint64_t HashOf(const std::string& text) {
  FnvHash hash;
  hash.AddBytes(text.data(), text.size());
  return hash.value();
}

// Expected values are from draft-eastlake-fnv, appendix C.
TEST(FnvHashTest, HasThePublishedValues) {
  EXPECT_EQ(HashOf(""), 0xcbf29ce484222325u);
  EXPECT_EQ(HashOf("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(HashOf("foobar"), 0x85944171f73967e8u);
}

TEST(FnvHashTest, AWordIsOneStep) {
  FnvHash word, bytes;
  word.Add('a');
  bytes.AddBytes("a", 1);
  EXPECT_EQ(word.value(), bytes.value());
}

std::uint64_t BlockHash(const std::string& text) {
  FnvHash hash;
  hash.AddBlock(text.data(), text.size());
  return hash.value();
}

TEST(FnvHashTest, ABlockIsItsLengthAndItsWords) {
  FnvHash words;
  words.Add(9);
  words.Add(0x3837363534333231u);  // "12345678"
  words.Add(0x39u);                // "9"
  EXPECT_EQ(BlockHash("123456789"), words.value());
  EXPECT_NE(BlockHash("a"), BlockHash(std::string("a\0", 2)));
  EXPECT_NE(BlockHash(""), FnvHash().value());
}

TEST(FnvHashTest, EveryBitOfABlockCounts) {
  const std::string text(19, 'x');
  const std::uint64_t hash = BlockHash(text);
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string flipped = text;
    flipped[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_NE(BlockHash(flipped), hash) << bit;
  }
}

}  // namespace
}  // namespace troupe::base

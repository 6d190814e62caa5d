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

}  // namespace
}  // namespace troupe::base

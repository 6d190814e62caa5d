#include "actors/cluster/key_store.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

TEST(KeyStoreTest, ReturnsThoseThatWaitOnce) {
  KeyStore keys;
  keys.Await("a", nullptr), keys.Await("a", nullptr), keys.Await("b", nullptr);
  EXPECT_EQ(keys.Find("a"), nullptr);
  EXPECT_EQ(keys.Set("a", "1")->size(), 2u);
  EXPECT_EQ(*keys.Find("a"), "1");
  EXPECT_TRUE(keys.Set("a", "2")->empty());
  EXPECT_EQ(*keys.Find("a"), "2");
  EXPECT_EQ(keys.TakeWaiting().size(), 1u) << "the one that waits for b";
  EXPECT_TRUE(keys.TakeWaiting().empty());
}

TEST(KeyStoreTest, RefusesAKeyThatIsTooLong) {
  KeyStore keys;
  EXPECT_TRUE(keys.Set("a", std::string(KeyStore::kKeyBytesMax - 1, 'x')).ok());
  const absl::Status status =
      keys.Set("b", std::string(KeyStore::kKeyBytesMax, 'x')).status();
  EXPECT_EQ(status, absl::ResourceExhaustedError(
                        "the store takes 131072 keys of 4096 bytes each; it "
                        "has 1 and got one of 4097 bytes; start fewer "
                        "processes"));
  EXPECT_EQ(keys.Find("b"), nullptr);
}

TEST(KeyStoreTest, RefusesOneKeyTooMany) {
  KeyStore keys;
  for (std::size_t i = 0; i < KeyStore::kKeysMax; ++i) {
    ASSERT_TRUE(keys.Set(absl::StrCat(i), "").ok());
  }
  EXPECT_FALSE(keys.Set("one more", "").ok());
  EXPECT_TRUE(keys.Set("0", "again").ok());
}

}  // namespace
}  // namespace troupe::actors

#include "data/gzip.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::HasSubstr;

Bytes Text(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * i >> 3);
  }
  return bytes;
}

TEST(GzipTest, InflatesEverySize) {
  for (std::size_t size : {0, 1, 1000, 65535, 65536, 65537, 300000}) {
    const Bytes text = Text(size);
    const auto plain = Gunzip(Gzip(text), "x.gz", 300000);
    ASSERT_TRUE(plain.ok()) << plain.status();
    EXPECT_EQ(*plain, text);
    const auto exact = Gunzip(Gzip(text), "x.gz", size);
    EXPECT_TRUE(exact.ok()) << exact.status();
  }
}

TEST(GzipTest, JoinsMembers) {
  Bytes packed = Gzip({1, 2});
  const Bytes more = Gzip({3});
  packed.insert(packed.end(), more.begin(), more.end());
  EXPECT_EQ(*Gunzip(packed, "x.gz", 3), Bytes({1, 2, 3}));
}

TEST(GzipTest, StopsAtTheLimit) {
  // A hundred million zeros in some hundred kilobytes.
  const Bytes bomb = Gzip(Bytes(100'000'000));
  EXPECT_LT(bomb.size(), 200'000u);
  const absl::Status status = Gunzip(bomb, "bomb.gz", 1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "bomb.gz: inflates to more than the 1000 bytes that it may hold; "
            "replace it by a file whose header is right");
}

TEST(GzipTest, PrefixReadsNoFurther) {
  Bytes packed = Gzip(Text(100000));
  packed.resize(packed.size() / 2);
  const Bytes text = Text(100000);
  EXPECT_EQ(*GunzipPrefix(packed, "x.gz", 20),
            Bytes(text.begin(), text.begin() + 20));
  EXPECT_EQ(*GunzipPrefix(Gzip({1}), "x.gz", 20), Bytes({1}));
}

TEST(GzipTest, SaysWhereItIsCorrupt) {
  const Bytes good = Gzip(Text(5000));
  for (std::size_t size :
       {std::size_t{2}, std::size_t{9}, good.size() / 2, good.size() - 1}) {
    const Bytes cut(good.begin(), good.begin() + size);
    const absl::Status status = Gunzip(cut, "cut.gz", 5000).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(
        status.message(),
        "cut.gz: corrupt gzip at byte " + std::to_string(size) +
            ": the compressed data is cut off; replace it by a whole copy");
  }
  Bytes checksum = good;
  checksum[checksum.size() - 8] ^= 1;
  EXPECT_THAT(std::string(Gunzip(checksum, "c.gz", 5000).status().message()),
              HasSubstr("incorrect data check"));
  Bytes trailing = good;
  trailing.push_back(0);
  EXPECT_THAT(std::string(Gunzip(trailing, "t.gz", 5000).status().message()),
              HasSubstr("bytes that are not gzip follow"));
  EXPECT_EQ(Gunzip({1, 2, 3}, "n.gz", 10).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace troupe::data

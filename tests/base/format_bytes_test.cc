#include "base/format_bytes.h"

#include "gtest/gtest.h"

namespace troupe::base {
namespace {

TEST(FormatBytes, InTheUnitThatFits) {
  EXPECT_EQ(FormatBytes(0), "0 bytes");
  EXPECT_EQ(FormatBytes(640), "640 bytes");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(1250000), "1.2 MiB");
  EXPECT_EQ(FormatBytes(std::uint64_t{720} << 20), "720 MiB");
  // Never more than three digits.
  EXPECT_EQ(FormatBytes(std::uint64_t{1020} << 20), "1 GiB");
  EXPECT_EQ(FormatBytes(std::uint64_t{5} << 40), "5 TiB");
}

}  // namespace
}  // namespace troupe::base

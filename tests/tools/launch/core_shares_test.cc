#include "tools/trainer/launch/core_shares.h"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::tools {
namespace {

TEST(CoreSharesTest, AllCoresAreShared) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  const std::size_t available = static_cast<std::size_t>(CPU_COUNT(&mask));
  for (std::size_t processes : {2, 3, 8}) {
    std::set<int> all;
    std::size_t sum = 0;
    const auto shares = ShareCores(static_cast<int>(processes));
    ASSERT_EQ(shares.size(), processes);
    for (const std::vector<int>& share : shares) {
      EXPECT_FALSE(share.empty());
      sum += share.size();
      for (int core : share) {
        EXPECT_TRUE(CPU_ISSET(core, &mask));
        all.insert(core);
      }
    }
    EXPECT_EQ(all.size(), available);
    EXPECT_GE(sum, std::max(available, processes));
  }
  EXPECT_TRUE(ShareCores(1)[0].empty());
}

}  // namespace
}  // namespace troupe::tools

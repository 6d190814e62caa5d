#include "tools/bench/report.h"

#include "gtest/gtest.h"
#include "tools/bench/cpu_info.h"

namespace troupe::bench {
namespace {

TEST(Report, RatiosAboveOneAreBetterWhateverTheUnit) {
  const Row time{"4 KB", 2, "us", 2.0, 10.0};
  const Row speed{"MLP", 1, "steps/s", 10.0, 2.0, Better::kHigher};
  EXPECT_EQ(time.ratio(), 5.0);
  EXPECT_EQ(speed.ratio(), 5.0);
}

TEST(Report, JsonHasNullsWhereThereIsNoPeer) {
  EXPECT_EQ(ToJson("all_reduce", "X", Row{"4 KB", 2, "us", 0.5, {}}),
            R"({"bench":"all_reduce","case":"4 KB","ranks":2,"unit":"us",)"
            R"("ours":0.5,"peer":null,"ratio":null,"cpu":"X"})");
  EXPECT_EQ(ToJson("b", "X", Row{"c", 1, "us", 0.5, 1.0}),
            R"({"bench":"b","case":"c","ranks":1,"unit":"us","ours":0.5,)"
            R"("peer":1.0,"ratio":2.0,"cpu":"X"})");
}

TEST(Report, JsonNamesTheGpuWhereOneComputes) {
  EXPECT_EQ(ToJson("b", "X", Row{"c", 1, "us", 0.5, 1.0}, "NVIDIA H200"),
            R"({"bench":"b","case":"c","ranks":1,"unit":"us","ours":0.5,)"
            R"("peer":1.0,"ratio":2.0,"cpu":"X","gpu":"NVIDIA H200"})");
}

TEST(Report, MedianOfTheMiddle) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
}

TEST(CpuInfo, HasANameAndAPeak) {
  EXPECT_FALSE(CpuName().empty());
  EXPECT_GT(F32PeakGflops(), 0.1);
}

}  // namespace
}  // namespace troupe::bench

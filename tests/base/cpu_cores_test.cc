#include "base/cpu_cores.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace troupe::base {
namespace {

class CpuCoresTest : public testing::Test {
 protected:
  CpuCoresTest()
      : root_(testing::TempDir() + "/" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(root_);
  }
  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }

  const std::string root_;
};

TEST_F(CpuCoresTest, ThisProcessHasSome) { EXPECT_GE(AvailableCores(), 1); }

TEST_F(CpuCoresTest, NothingThatCanBeReadIsNoLimit) {
  EXPECT_EQ(ControlGroupCores(root_), 0);
  Put("/proc/self/cgroup", "nonsense\n0::relative\n");
  EXPECT_EQ(ControlGroupCores(root_), 0);
}

TEST_F(CpuCoresTest, AUnifiedGroupGrantsCoresRoundedUp) {
  Put("/proc/self/cgroup", "0::/\n");
  Put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(ControlGroupCores(root_), 2);
  Put("/sys/fs/cgroup/cpu.max", "20000 100000\n");
  EXPECT_EQ(ControlGroupCores(root_), 1);
  Put("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(ControlGroupCores(root_), 0);
}

TEST_F(CpuCoresTest, AGroupAboveLimitsToo) {
  Put("/proc/self/cgroup", "0::/jobs/one\n");
  Put("/sys/fs/cgroup/jobs/one/cpu.max", "800000 100000\n");
  EXPECT_EQ(ControlGroupCores(root_), 8);
  Put("/sys/fs/cgroup/jobs/cpu.max", "300000 100000\n");
  EXPECT_EQ(ControlGroupCores(root_), 3);
}

TEST_F(CpuCoresTest, TheNameOfAGroupMayHaveSpaces) {
  Put("/proc/self/cgroup", "0::/my jobs/one\n");
  Put("/sys/fs/cgroup/my jobs/cpu.max", "200000 100000\n");
  EXPECT_EQ(ControlGroupCores(root_), 2);
}

TEST_F(CpuCoresTest, GroupsOfTheFirstVersion) {
  Put("/proc/self/cgroup", "5:cpuset:/a\n4:cpu,cpuacct:/a\n");
  Put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "250000\n");
  Put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(ControlGroupCores(root_), 5);
  Put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(ControlGroupCores(root_), 0);
}

}  // namespace
}  // namespace troupe::base

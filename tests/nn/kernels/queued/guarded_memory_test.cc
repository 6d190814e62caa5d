#include "nn/kernels/queued/guarded_memory.h"

#include <cstring>

#include "gtest/gtest.h"

namespace troupe::nn {
namespace {

TEST(GuardedMemory, IsOpenWhileSomebodyOpensIt) {
  GuardedMemory memory(1 << 20);
  auto* const block = static_cast<char*>(memory.Allocate(100));
  ASSERT_NE(block, nullptr);
  {
    const GuardedMemory::Opened outer(memory);
    { const GuardedMemory::Opened inner(memory); }
    std::memset(block, 7, 100);
    auto* const later = static_cast<char*>(memory.Allocate(100));
    std::memset(later, 8, 100);
    EXPECT_EQ(block[99], 7);
  }
}

TEST(GuardedMemory, EndsAndTakesBack) {
  GuardedMemory memory(4096);
  void* const all = memory.Allocate(4096);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(memory.Allocate(64), nullptr);
  EXPECT_EQ(memory.bytes_free(), 0u);
  memory.Free(all, 4096);
  EXPECT_EQ(memory.bytes_free(), 4096u);
  EXPECT_EQ(memory.Allocate(4096), all);
}

TEST(GuardedMemoryDeathTest, TheHostMayNeitherReadNorWrite) {
  GuardedMemory memory(1 << 20);
  auto* const block = static_cast<volatile char*>(memory.Allocate(64));
  EXPECT_DEATH(block[0] = 1, "");
  EXPECT_DEATH(static_cast<void>(block[0]), "");
}

}  // namespace
}  // namespace troupe::nn

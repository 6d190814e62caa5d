#include "pipeline/table/ready_set.h"

#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "nn/random/philox.h"

namespace troupe::pipeline {
namespace {

TEST(ReadySetTest, KnowsTheSmallest) {
  std::vector<std::uint64_t> memory(ReadySet::WordsFor(5));
  ReadySet ready(memory.data(), 5);
  EXPECT_EQ(ready.First(), -1);
  ready.Insert(3);
  EXPECT_EQ(ready.First(), 3);
  ready.Insert(1);
  ready.Insert(1);
  EXPECT_EQ(ready.First(), 1);
  ready.Erase(1);
  EXPECT_EQ(ready.First(), 3);
  ready.Erase(4);  // is not in
  ready.Erase(3);
  EXPECT_EQ(ready.First(), -1);
}

TEST(ReadySetTest, ASetOfNothingIsEmpty) {
  EXPECT_EQ(ReadySet().First(), -1);
  EXPECT_EQ(ReadySet::WordsFor(0), 0u);
}

// Compares with std::set, at sizes around the limits of words.
TEST(ReadySetTest, SaysWhatASetSays) {
  for (int size : {1, 63, 64, 65, 1000, 4096, 4097, 20000}) {
    nn::RandomStream draws(nn::RandomKey(size, nn::Purpose::kTest), {});
    std::vector<std::uint64_t> memory(ReadySet::WordsFor(size));
    ReadySet ready(memory.data(), size);
    std::set<int> expected;
    for (int round = 0; round < 2000; ++round) {
      const int i = static_cast<int>(draws.Below(size));
      if (draws.Below(2) == 0) {
        ready.Insert(i);
        expected.insert(i);
      } else {
        ready.Erase(expected.empty() ? i : *expected.begin());
        expected.erase(expected.empty() ? i : *expected.begin());
      }
      ASSERT_EQ(ready.First(), expected.empty() ? -1 : *expected.begin())
          << "size " << size << ", round " << round;
    }
  }
}

}  // namespace
}  // namespace troupe::pipeline

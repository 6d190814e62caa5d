// Tests the limits of the local group, which the suite does not cover.

#include <vector>

#include "comm/local/cut.h"
#include "comm/local/local_group.h"
#include "gtest/gtest.h"

namespace troupe::comm {
namespace {

TEST(LocalGroup, StopsAtItsLimitAndGoesOnAfterwards) {
  LocalGroupOptions options;
  options.size = 2;
  options.in_flight_max = 4;
  const auto ranks = MakeLocalGroup(options);
  for (int round = 0; round < 3; ++round) {
    std::vector<Event> events;
    for (int i = 0; i < 4; ++i) {
      events.push_back(*ranks[0]->Start(Barrier(), Event()));
    }
    EXPECT_EQ(ranks[0]->Start(Barrier(), Event()).status().code(),
              absl::StatusCode::kResourceExhausted);
    for (int i = 0; i < 4; ++i) {
      events.push_back(*ranks[1]->Start(Barrier(), Event()));
    }
    for (const Event& event : events) EXPECT_TRUE(event.status().ok());
  }
}

TEST(LocalGroup, ReusesItsRecordsMoreOftenThanThereAre) {
  LocalGroupOptions options;
  options.size = 2;
  options.in_flight_max = 1;
  options.chunk_bytes = 1;  // the smallest value
  const auto ranks = MakeLocalGroup(options);
  nn::CachingAllocator allocator;
  const nn::Tensor a = nn::Tensor::Zeros({2000}, nn::DType::kI32, allocator);
  const nn::Tensor b = nn::Tensor::Zeros({2000}, nn::DType::kI32, allocator);
  b.data<std::int32_t>()[1999] = 1;
  for (int round = 0; round < 10; ++round) {
    const Event first = *ranks[0]->Start(AllReduce(ReduceOp::kSum, a), Event());
    const Event second =
        *ranks[1]->Start(AllReduce(ReduceOp::kSum, b), Event());
    while (ranks[round % 2]->Progress()) {
    }
    EXPECT_TRUE(first.ready() && second.ready());
  }
  // Each round but the first doubles the value.
  EXPECT_EQ(a.data<std::int32_t>()[1999], 512);
}

TEST(Cut, GivesEachRankAChunkOfASmallRangeAndCoversAll) {
  for (int ranks : {2, 3, 5, 16, 256}) {
    for (std::int64_t count : {0, 1, 511, 1024, 4096, 100003, 1 << 24}) {
      const internal::Cut cut(count, /*element_bytes=*/4, ranks,
                              /*chunk_bytes=*/32 << 10);
      EXPECT_EQ(cut.ShareBegin(ranks), cut.chunks());
      if (count == 0) continue;
      EXPECT_LT(cut.ElementBegin(cut.chunks() - 1), count);
      EXPECT_EQ(cut.ElementEnd(cut.chunks() - 1), count);
      EXPECT_LE(cut.ElementEnd(0), 8192);
    }
  }
}

}  // namespace
}  // namespace troupe::comm

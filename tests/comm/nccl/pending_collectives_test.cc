#include "comm/nccl/pending_collectives.h"

#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "comm/communicator.h"
#include "comm/nccl/local_ranks.h"
#include "gtest/gtest.h"

namespace troupe::comm::internal {
namespace {

const absl::Time kNow = absl::UnixEpoch();

TEST(PendingCollectivesTest, TheOldestIsTheFirstThatIsNotRemoved) {
  PendingCollectives pending;
  EXPECT_TRUE(pending.empty());
  pending.Add(4, {Barrier()}, kNow);
  pending.Add(5, {Barrier()}, kNow + absl::Seconds(1));
  pending.Add(6, {Barrier()}, kNow + absl::Seconds(2));
  pending.Remove(5);
  pending.Remove(5);
  EXPECT_EQ(pending.oldest().number, 4u);
  EXPECT_EQ(pending.oldest().since, kNow);
  pending.Remove(4);
  EXPECT_EQ(pending.oldest().number, 6u);
  EXPECT_EQ(pending.oldest().since, kNow + absl::Seconds(2));
  EXPECT_EQ(pending.Find(4), nullptr);
  EXPECT_EQ(pending.Find(6), &pending.oldest());
}

TEST(PendingCollectivesTest, NamesWhatStartsTogether) {
  PendingCollectives pending;
  EXPECT_EQ(pending.Add(0, {Barrier()}, kNow).what,
            "barrier(), collective 0 of the group");
  EXPECT_EQ(pending.Add(1, {Barrier(), Barrier(), Barrier()}, kNow).what,
            "barrier(), collective 1 of the group, and 2 with it");
}

TEST(PendingCollectivesTest, GivesAwayEventsThatAreNotComplete) {
  PendingCollectives pending;
  const Event done = pending.Add(0, {Barrier()}, kNow).done;
  const std::deque<PendingCollective> all = pending.TakeAll();
  EXPECT_TRUE(pending.empty());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_FALSE(done.ready());
  all[0].done.Complete(absl::OkStatus());
  EXPECT_TRUE(done.ready());
}

TEST(PendingCollectivesTest, WaitsForTheRanksThatHaveNotStarted) {
  LocalRanks ranks(/*size=*/3, /*local=*/{0, 1}, /*in_flight_max=*/8);
  PendingCollectives pending;
  for (std::uint64_t number = 0; number < 2; ++number) {
    ASSERT_EQ(*ranks.Admit(/*rank=*/0, /*signature=*/1), number);
    pending.Add(number, {Barrier()}, kNow);
  }
  ASSERT_TRUE(ranks.Admit(/*rank=*/1, /*signature=*/1).ok());
  const std::vector<Waiting> waits =
      pending.Waits(ranks, /*rank=*/0, /*certain=*/false);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].collective, 0);
  EXPECT_EQ(waits[0].ranks, (std::vector<int>{2}));
  EXPECT_EQ(waits[1].collective, 1);
  EXPECT_EQ(waits[1].ranks, (std::vector<int>{1, 2}));
  EXPECT_EQ(waits[1].what, "barrier(), collective 1 of the group");
  EXPECT_FALSE(waits[1].certain);
  EXPECT_EQ(ranks.LateText(/*rank=*/0, 0, absl::Minutes(5)),
            "waited 5m for the other ranks; rank 2 has not started it, as far "
            "as this process knows");
  EXPECT_EQ(ranks.LateText(/*rank=*/0, 1, absl::Minutes(5)),
            "waited 5m for the other ranks; ranks 1, 2 have not started it, as "
            "far as this process knows");
}

}  // namespace
}  // namespace troupe::comm::internal

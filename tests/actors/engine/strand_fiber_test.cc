#include "actors/engine/fiber/strand_fiber.h"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/local/local_group.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"

namespace troupe::actors {
namespace {

using State = StrandFiber::State;

StrandFiber::Options SharedThread(std::function<void()> notify = [] {}) {
  StrandFiber::Options options;
  options.shared_thread = true;
  options.notify = std::move(notify);
  return options;
}

TEST(StrandFiberTest, SaysWhatItWaitsFor) {
  std::unique_ptr<StrandFiber> fiber;
  fiber = std::make_unique<StrandFiber>(StrandFiber::Options(), [&] {
    fiber->AwaitNews();
    fiber->TakeNews(/*expected=*/false);  // goes on
    fiber->TakeNews(/*expected=*/true);
  });
  EXPECT_EQ(fiber->Resume(), State::kWaiting);
  EXPECT_EQ(fiber->Resume(), State::kLooking);
  EXPECT_EQ(fiber->Resume(), State::kDone);
}

TEST(StrandFiberTest, LooksAtEveryPointWhereTheThreadIsShared) {
  std::unique_ptr<StrandFiber> fiber;
  fiber = std::make_unique<StrandFiber>(
      SharedThread(), [&] { fiber->TakeNews(/*expected=*/false); });
  EXPECT_EQ(fiber->Resume(), State::kLooking);
  EXPECT_EQ(fiber->Resume(), State::kDone);
}

TEST(StrandFiberTest, ExceptionsLeaveThroughResume) {
  StrandFiber fiber(StrandFiber::Options(),
                    [] { throw std::runtime_error("planted"); });
  EXPECT_THROW(fiber.Resume(), std::runtime_error);
}

// The ranks of one group, each a fiber of this thread.
class Ranks {
 public:
  Ranks(int count, std::function<void(int rank, StrandFiber& fiber,
                                      comm::Communicator& comm)>
                       body) {
    comm::LocalGroupOptions options;
    options.size = count;
    options.chunk_bytes = 16;
    group_ = comm::MakeLocalGroup(options);
    awake_.assign(count, true);
    fibers_.resize(count);
    for (int rank = 0; rank < count; ++rank) {
      fibers_[rank] = std::make_unique<StrandFiber>(
          SharedThread([this, rank] { awake_[rank] = true; }),
          [this, rank, body] { body(rank, *fibers_[rank], *group_[rank]); });
    }
  }

  // Resumes fibers that are awake, in an order chosen by the seed, until none
  // is. Returns whether all have ended.
  bool Run(std::uint64_t seed) {
    nn::RandomStream draws(nn::RandomKey(seed, nn::Purpose::kTest), {});
    int done = 0;
    while (true) {
      std::vector<int> ready;
      for (int r = 0; r < static_cast<int>(awake_.size()); ++r) {
        if (awake_[r]) ready.push_back(r);
      }
      if (ready.empty()) return done == static_cast<int>(awake_.size());
      const int rank = ready[draws.Bits32() % ready.size()];
      awake_[rank] = false;
      const State state = fibers_[rank]->Resume();
      if (state == State::kLooking) awake_[rank] = true;
      done += state == State::kDone;
    }
  }
  void End(int rank) {
    fibers_[rank].reset();
    awake_[rank] = false;  // its end may have woken it
  }
  void Wake(int rank) { awake_[rank] = true; }
  comm::Communicator& comm(int rank) { return *group_[rank]; }

 private:
  std::vector<std::unique_ptr<comm::Communicator>> group_;
  std::vector<bool> awake_;
  std::vector<std::unique_ptr<StrandFiber>> fibers_;
};

nn::Tensor Filled(nn::CachingAllocator& allocator, int rank, int round) {
  nn::Tensor tensor = nn::Tensor::Empty({50}, nn::DType::kF32, allocator);
  for (int i = 0; i < 50; ++i) {
    tensor.data<float>()[i] = 1.0f / static_cast<float>(1 + i * rank + round);
  }
  return tensor;
}

// Every order of the fibers gives the same bits.
TEST(StrandFiberTest, InlineCollectivesGiveTheSameBitsUnderEverySeed) {
  constexpr int kRanks = 3;
  nn::CachingAllocator allocator;
  std::vector<float> expected;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<float> sums[kRanks];
    Ranks ranks(kRanks, [&](int rank, StrandFiber& fiber,
                            comm::Communicator& comm) {
      for (int round = 0; round < 3; ++round) {
        const nn::Tensor range = Filled(allocator, rank, round);
        ASSERT_TRUE(
            fiber.RunInline(comm, comm::AllReduce(comm::ReduceOp::kSum, range))
                .ok());
        for (float x : range.span<float>()) sums[rank].push_back(x);
      }
    });
    ASSERT_TRUE(ranks.Run(seed)) << "seed " << seed;
    if (seed == 0) expected = sums[0];
    for (const std::vector<float>& sum : sums) {
      ASSERT_EQ(sum, expected) << "seed " << seed;
    }
  }
}

TEST(StrandFiberTest, AnAbortEndsAWaitWithItsStatus) {
  nn::CachingAllocator allocator;
  std::string seen;
  Ranks ranks(2, [&](int rank, StrandFiber& fiber, comm::Communicator& comm) {
    if (rank == 1) return;  // dies
    const absl::Status status = fiber.RunInline(
        comm,
        comm::AllReduce(comm::ReduceOp::kSum, Filled(allocator, rank, 0)));
    seen = status.ToString();
  });
  EXPECT_FALSE(ranks.Run(/*seed=*/0));
  EXPECT_EQ(seen, "");
  ranks.comm(1).Abort(absl::UnavailableError("rank 1 is gone"));
  ranks.Run(/*seed=*/0);
  EXPECT_EQ(seen, "UNAVAILABLE: rank 1 is gone");
}

// Peers must not write to the stack of a fiber that was destroyed.
TEST(StrandFiberTest, OneThatIsUnwoundAbortsItsGroup) {
  nn::CachingAllocator allocator;
  std::string seen;
  Ranks ranks(2, [&](int rank, StrandFiber& fiber, comm::Communicator& comm) {
    if (rank == 1) fiber.AwaitNews();  // joins the collective late
    const absl::Status status = fiber.RunInline(
        comm,
        comm::AllReduce(comm::ReduceOp::kSum, Filled(allocator, rank, 0)));
    seen = status.ToString();
  });
  EXPECT_FALSE(ranks.Run(/*seed=*/0));
  ranks.End(0);
  ranks.Wake(1);
  ranks.Run(/*seed=*/0);
  EXPECT_EQ(seen, "CANCELLED: rank 0 of the group ended during a collective");
}

}  // namespace
}  // namespace troupe::actors

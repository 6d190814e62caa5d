#include "troupe/internal/started_collectives.h"

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "base/event.h"
#include "base/status_error.h"
#include "comm/communicator.h"
#include "gtest/gtest.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

// Runs `test` as a program of one rank, with a group of it.
template <typename Test>
void InAGroup(const Test& test) {
  const auto program = [&](Rank& rank) {
    const std::shared_ptr<comm::Communicator> group =
        base::OrThrow(rank.strand().MakeGroup({0}));
    StartedCollectives started(rank.strand());
    test(started, group);
  };
  EXPECT_EQ(Spawn(program, /*ranks=*/1), absl::OkStatus());
}

TEST(StartedCollectivesTest, GivesThoseThatHaveEndedInTheirOrder) {
  InAGroup([](StartedCollectives& started, const auto& group) {
    std::size_t next = 0;
    EXPECT_TRUE(started.empty());
    EXPECT_FALSE(started.TakeEnded(next).has_value());
    base::Event events[4];
    for (int i = 0; i < 4; ++i) {
      events[i] = base::Event::Make();
      if (i < 3) started.Add({/*step=*/7, i}, *group, events[i], nullptr);
    }
    events[1].Complete(absl::CancelledError("a"));
    events[2].Complete(absl::OkStatus());
    auto ended = started.TakeEnded(next);
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->of.step, 7);
    EXPECT_EQ(ended->of.action, 1);
    EXPECT_EQ(ended->done.status(), absl::CancelledError("a"));
    // One that is started between two calls is of the same pass; one before
    // the last that was given is of the next.
    started.Add({8, 3}, *group, events[3], nullptr);
    events[0].Complete(absl::OkStatus());
    events[3].Complete(absl::OkStatus());
    EXPECT_EQ(started.TakeEnded(next)->of.action, 2);
    EXPECT_EQ(started.TakeEnded(next)->of.action, 3);
    EXPECT_FALSE(started.TakeEnded(next).has_value());
    EXPECT_FALSE(started.empty());
    next = 0;
    EXPECT_EQ(started.TakeEnded(next)->of.action, 0);
    EXPECT_TRUE(started.empty());
  });
}

TEST(StartedCollectivesTest, TheWaiterDrivesWhatNoOtherStrandDoes) {
  InAGroup([](StartedCollectives& started, const auto& group) {
    const auto start = [&](bool on_device) {
      started.Start({1, 0}, group, comm::Barrier(), {}, on_device);
      const bool drives = started.Oldest().drives;
      EXPECT_EQ(started.Oldest().group, group.get());
      while (!started.Oldest().done.ready()) started.Drive();
      std::size_t next = 0;
      EXPECT_TRUE(started.TakeEnded(next)->done.status().ok());
      return drives;
    };
    EXPECT_TRUE(start(/*on_device=*/false));
    EXPECT_FALSE(start(/*on_device=*/true));
  });
}

TEST(StartedCollectivesTest, AbortEndsThoseUnderWay) {
  InAGroup([](StartedCollectives& started, const auto& group) {
    started.Add({1, 0}, *group, base::Event(), nullptr);
    started.Abort(absl::CancelledError("a"));  // has ended
    EXPECT_TRUE(group->Start(comm::Barrier(), {}).ok());
    started.Add({1, 1}, *group, base::Event::Make(), nullptr);
    started.Abort(absl::CancelledError("b"));
    EXPECT_EQ(group->Start(comm::Barrier(), {}).status(),
              absl::CancelledError("b"));
  });
}

}  // namespace
}  // namespace troupe

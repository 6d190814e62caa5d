// Tests the links of a simulation: no transfer arrives before the scheduler
// runs its link. A link keeps the order; across links every order occurs under
// some seed.

#include "actors/sim/slow_links.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

using testing::Contains;
using testing::StartsWith;

// Notes the stage and the micro-batch of each transfer that arrives.
class NotingLink : public StageLink {
 public:
  explicit NotingLink(std::string* notes) : notes_(notes) {}
  void Send(int stage, Transfer transfer) override {
    absl::StrAppend(notes_, stage, ":", transfer.micro_batch, " ");
  }
  bool NeedsHostMemory(int stage) const override { return stage == 1; }

 private:
  std::string* const notes_;
};

Transfer Numbered(int micro_batch) {
  Transfer transfer;
  transfer.micro_batch = micro_batch;
  return transfer;
}

// Returns the order in which transfers arrive: three micro-batches are sent to
// stage 0, then three to stage 1.
std::string Arrivals(std::uint64_t seed) {
  SimulatedConfig config;
  caf::actor_system system(config);
  SeededScheduler scheduler(system, {seed});
  SlowLinks links(system, scheduler);
  std::string notes;
  const std::shared_ptr<StageLink> link =
      links.Over(std::make_shared<NotingLink>(&notes));
  for (const int stage : {0, 1}) {
    for (int m = 0; m < 3; ++m) link->Send(stage, Numbered(m));
  }
  EXPECT_EQ(notes, "") << "arrived at once";
  while (scheduler.Step()) {
  }
  return notes;
}

std::string OfStage(const std::string& notes, char stage) {
  std::string numbers;
  for (std::size_t i = 0; i + 4 <= notes.size(); i += 4) {
    if (notes[i] == stage) numbers += notes[i + 2];
  }
  return numbers;
}

TEST(SlowLinksTest, KeepTheOrderOfALinkAndNoOther) {
  std::set<std::string> all;
  for (std::uint64_t seed : EverySeed(200)) {
    const std::string notes = Arrivals(seed);
    ASSERT_EQ(OfStage(notes, '0'), "012") << notes << ReplayCommand(seed);
    ASSERT_EQ(OfStage(notes, '1'), "012") << notes << ReplayCommand(seed);
    ASSERT_EQ(Arrivals(seed), notes) << ReplayCommand(seed);
    all.insert(notes);
  }
  EXPECT_EQ(all.size(), 20u);  // 6 choose 3
  // One link is slow: all later transfers arrive before its first one.
  EXPECT_THAT(all, Contains(StartsWith("1:0 1:1 1:2 ")));
}

TEST(SlowLinksTest, AreAsTheLinkThatTheyWrap) {
  SimulatedConfig config;
  caf::actor_system system(config);
  SeededScheduler scheduler(system, {});
  SlowLinks links(system, scheduler);
  std::string notes;
  const auto link = links.Over(std::make_shared<NotingLink>(&notes));
  EXPECT_FALSE(link->NeedsHostMemory(0));
  EXPECT_TRUE(link->NeedsHostMemory(1));
}

}  // namespace
}  // namespace troupe::actors

// Deliberate bugs: missing waits between the queues of a device. A job on
// queued devices must reveal each within a thousand seeds, by other bits than
// the CPU's.

#include <cstdint>
#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "tests/actors/jobs/planted/bug.h"
#include "tests/actors/jobs/queued_job.h"
#include "tests/actors/sim/planted/hunt.h"

namespace troupe::actors {
namespace {

constexpr char kOtherBits[] = "other bits than the CPU's";

struct Case {
  Bug bug;
  const char* name;
  int dp = 2;
  int pp = 1;
};

#define TROUPE_CASE(bug, ...) \
  { Bug::k##bug, #bug, __VA_ARGS__ }

constexpr Case kCases[] = {
    // With reductions, the sums of buckets already wait for their last
    // gradients, so this case has none.
    TROUPE_CASE(UpdateBesideItsReader, /*dp=*/1, /*pp=*/2),
    TROUPE_CASE(UpdateBeforeItsSum),
    TROUPE_CASE(ForwardBeforeUpdate),
    TROUPE_CASE(UpdateBeforeTheCount),
    TROUPE_CASE(ScalarsWrittenTooEarly),
};

// Prints the bug's name in messages of GoogleTest.
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class QueueBugsTest : public testing::TestWithParam<Case> {};

TEST_P(QueueBugsTest, IsFound) {
  const Case& bug = GetParam();
  const JobSpec spec = LeNetJob(bug.dp, bug.pp);
  const Outcome want = OnTheCpu(spec);
  const auto try_seed = [&](std::uint64_t seed) -> std::string {
    return OnQueuedDevices(spec, seed) == want ? "" : kOtherBits;
  };
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    ASSERT_EQ(try_seed(seed), "") << seed;
  }
  ExpectFound(bug.bug, bug.name, kOtherBits, try_seed);
}

INSTANTIATE_TEST_SUITE_P(All, QueueBugsTest, testing::ValuesIn(kCases),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST(QueueBugs, EveryBugHasACase) { ExpectACaseForEach<Bug>(kCases); }

}  // namespace
}  // namespace troupe::actors

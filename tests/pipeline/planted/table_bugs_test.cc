// Deliberate bugs in the cursor and in the bound of activations: the search of
// all orders (tests/pipeline/all_orders.h) finds each, in a small pipeline.
// docs/simulation.md has the table.

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "pipeline/schedules/schedules.h"
#include "tests/actors/sim/planted/hunt.h"
#include "tests/pipeline/planted/bug.h"
#include "tests/pipeline/schedules/engine_tables.h"

namespace troupe::pipeline {
namespace {

EngineTables OneChunk() {
  return {Mesh(/*dp=*/1, /*pp=*/3), LoopedPlacement(3, 1),
          *OneForwardOneBackward(3, 4), Dispatch::kArrival};
}

struct Case {
  Bug bug;
  const char* name;
  EngineTables (*job)();
  const char* found;  // text that the search's report has
};

#define TROUPE_CASE(bug, job, found) \
  { Bug::k##bug, #bug, job, found }

constexpr Case kCases[] = {
    TROUPE_CASE(ForgottenWhileComputing, OneChunk,
                "leads to offers that depend on the way"),
    TROUPE_CASE(OneNeedIsEnough, OneChunk, "starts before its needs are there"),
    TROUPE_CASE(OneActivationMore, OneChunk,
                "keeps more activations than the bound"),
};

class TableBugsTest : public testing::TestWithParam<Case> {};

TEST_P(TableBugsTest, IsFound) {
  const Case& c = GetParam();
  EXPECT_EQ(c.job().TryAllOrders().error, "");
  ExpectFound(c.bug, c.name, c.found,
              [&](std::uint64_t) { return c.job().TryAllOrders().error; });
}

INSTANTIATE_TEST_SUITE_P(Bugs, TableBugsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(TableBugsTest, EveryBugHasACase) { ExpectACaseForEach<Bug>(kCases); }

}  // namespace
}  // namespace troupe::pipeline

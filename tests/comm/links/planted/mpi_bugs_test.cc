// Deliberate bugs in the lifetime of payloads that MPI reads from the memory of
// tensors: each must be found by a trial that says what is wrong.

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/actors/sim/planted/hunt.h"
#include "tests/comm/links/mpi_lifetime.h"
#include "tests/comm/links/planted/bug.h"

namespace troupe::comm {
namespace {

struct Case {
  Bug bug;
  const char* name;
  // Part of the text that the trial returns.
  const char* found;
  std::string (*trial)();
};

std::string WhatARevokedPayloadIsThatArrived() {
  return WhatARevokedPayloadIs(/*received=*/true);
}

#define TROUPE_CASE(bug, ...) \
  { Bug::k##bug, #bug, __VA_ARGS__ }

constexpr Case kCases[] = {
    TROUPE_CASE(ReleasedUnread, "it is released before it was received",
                WhenItIsReleased),
    TROUPE_CASE(SmallFramesOvertake, "a later frame is released",
                WhetherFramesKeepTheirOrder),
    TROUPE_CASE(MpiGoesOnAfterTheEnd, "MPI may read memory that was given back",
                WhatAnEndLeaves),
    TROUPE_CASE(UsedUnconfirmed, "before its sender has confirmed it",
                WhenItIsReleased),
    TROUPE_CASE(RevokedIsUsed, "although its sender has given it up",
                WhatARevokedPayloadIsThatArrived),
};

TEST(MpiBugsTest, EachHasACase) { ExpectACaseForEach<Bug>(kCases); }

class MpiBugTest : public testing::TestWithParam<Case> {};

TEST_P(MpiBugTest, IsFound) {
  const Case& c = GetParam();
  // MPI begins in the process of the hunt.
  ExpectFound(c.bug, c.name, c.found, [&](std::uint64_t) { return c.trial(); });
}

INSTANTIATE_TEST_SUITE_P(All, MpiBugTest, testing::ValuesIn(kCases),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace troupe::comm

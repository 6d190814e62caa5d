// Tests the lifetime of payloads that MPI reads from the memory of tensors.

#include "comm/mpi/mpi_sends.h"

#include "gtest/gtest.h"
#include "tests/comm/links/mpi_lifetime.h"

namespace troupe::comm {
namespace {

class MpiSendsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasMpi()) GTEST_SKIP() << "skipped: there is no Open MPI";
  }
};

TEST_F(MpiSendsTest, ReleasesAPayloadThatWasReadAndThenItIsUsed) {
  EXPECT_EQ(WhenItIsReleased(), "");
}

TEST_F(MpiSendsTest, ReleasesFramesInOrder) {
  EXPECT_EQ(WhetherFramesKeepTheirOrder(), "");
}

TEST_F(MpiSendsTest, GivesMemoryBackAtTheEndWithoutAReader) {
  EXPECT_EQ(WhatAnEndLeaves(), "");
}

TEST_F(MpiSendsTest, ARevokedPayloadIsNotUsed) {
  EXPECT_EQ(WhatARevokedPayloadIs(/*received=*/true), "");
  EXPECT_EQ(WhatARevokedPayloadIs(/*received=*/false), "");
}

}  // namespace
}  // namespace troupe::comm

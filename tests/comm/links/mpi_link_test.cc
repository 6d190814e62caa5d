#include <cstddef>
#include <cstdlib>

#include "comm/link.h"
#include "comm/mpi/mpi_process.h"
#include "gtest/gtest.h"
#include "tests/comm/links/link_suite.h"
#include "tests/comm/links/mpi_pair.h"

namespace troupe::comm {
namespace {

// Fewer small frames, since MPI searches all messages that a process has sent
// to itself.
INSTANTIATE_TEST_SUITE_P(Mpi, LinkTest,
                         testing::Values(LinkKind{"Mpi", &MakeMpiPair,
                                                  /*small_frames=*/2'000}),
                         [](const auto& info) { return info.param.name; });

// A frame of one message must not wait for an answer of its receiver: Open MPI
// begins with a limit above it.
TEST(MpiLinkTest, AFrameOfOneMessageIsSentAtOnce) {
  if (MakeMpiPair().a == nullptr) GTEST_SKIP() << "skipped: no Open MPI";
  const char* const limit = std::getenv("OMPI_MCA_btl_vader_eager_limit");
  ASSERT_NE(limit, nullptr);
  EXPECT_GT(std::strtoull(limit, nullptr, 10),
            sizeof(Frame) + kMpiPackedBytesMax);
}

}  // namespace
}  // namespace troupe::comm

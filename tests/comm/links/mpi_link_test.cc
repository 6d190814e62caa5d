#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "comm/link.h"
#include "comm/mpi/mpi_process.h"
#include "gtest/gtest.h"
#include "tests/comm/links/link_suite.h"
#include "tests/comm/links/link_test_util.h"
#include "tests/comm/links/mpi_pair.h"

namespace troupe::comm {
namespace {

// Fewer small frames, since MPI searches all messages that a process has sent
// to itself.
INSTANTIATE_TEST_SUITE_P(Mpi, LinkTest,
                         testing::Values(LinkKind{"Mpi", &MakeMpiPair,
                                                  /*small_frames=*/2'000,
                                                  /*lends_payloads=*/true}),
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

// The peer is stopped, and nothing reads what was sent: the link gives its
// memory back after a bounded time, and MPI is not used any more.
TEST(MpiLinkTest, AnEndWithoutAReaderEndsTheUseOfMpi) {
  LinkPair pair = MakeMpiPair();
  if (pair.a == nullptr) GTEST_SKIP() << "skipped: no Open MPI";
  RecordingSink at_a;
  RecordingSink at_b;
  pair.a->SetSink(&at_a);
  pair.b->SetSink(&at_b);
  const std::string text = Text(1 << 20, 1);
  CountDone done;
  Frame frame;
  frame.bytes = static_cast<std::uint32_t>(text.size());
  pair.a->Send(frame, text.data(), &done);
  EXPECT_EQ(done.count, 0);
  pair.a->Close(absl::AbortedError("enough"));
  EXPECT_EQ(done.count, 1);
  EXPECT_TRUE(Pump({pair.b.get()}, [&] { return at_b.losses() == 1; }));
  EXPECT_EQ(at_b.count(), 0u);
  EXPECT_EQ(at_b.why(),
            absl::UnavailableError("process 1 at the other thread has not "
                                   "received a payload, whose memory MPI "
                                   "holds; start all processes anew"));
}

}  // namespace
}  // namespace troupe::comm

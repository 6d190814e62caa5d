// Tests a process in which other code has initialized or finalized MPI.

#include "comm/mpi/mpi_context.h"

#include <cstdlib>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "comm/mpi/mpi_library.h"
#include "comm/mpi/mpi_process.h"
#include "gtest/gtest.h"

namespace troupe::comm::internal {
namespace {

// A process can initialize and finalize MPI only once, so all of this is one
// test.
TEST(MpiContext, RefusesMpiWithoutThreadsAndMpiThatHasEnded) {
  // An isolated singleton needs neither a daemon nor a network.
  ::setenv("OMPI_MCA_ess_singleton_isolated", "1", /*overwrite=*/1);
  ::setenv("OMPI_MCA_btl", "self", /*overwrite=*/1);
  const absl::StatusOr<MpiLibrary> mpi = MpiLibrary::Load();
  if (!mpi.ok()) GTEST_SKIP() << "skipped: " << mpi.status().message();
  EXPECT_TRUE(absl::StartsWith(MpiProcess::Version().value(), "Open MPI v4."))
      << *MpiProcess::Version();

  int level = -1;
  ASSERT_EQ(mpi->Init_thread(nullptr, nullptr, MPI_THREAD_SINGLE, &level),
            MPI_SUCCESS);
  ASSERT_EQ(level, MPI_THREAD_SINGLE);
  EXPECT_EQ(MpiProcess::Start().status(),
            absl::FailedPreconditionError(
                "MPI began without threads; call MPI_Init_thread with "
                "MPI_THREAD_SERIALIZED"));

  ASSERT_EQ(mpi->Finalize(), MPI_SUCCESS);
  EXPECT_EQ(MpiProcess::Start().status(),
            absl::FailedPreconditionError(
                "MPI has ended in this process, and begins only once; call "
                "MPI_Finalize() after the last use of MPI"));
}

}  // namespace
}  // namespace troupe::comm::internal

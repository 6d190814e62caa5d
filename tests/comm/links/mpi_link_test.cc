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

}  // namespace
}  // namespace troupe::comm

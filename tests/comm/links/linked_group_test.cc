// Runs the suite on groups that span processes, over real links.

#include "tests/comm/links/linked_group.h"

#include "gtest/gtest.h"
#include "tests/comm/communicator_suite.h"

namespace troupe::comm {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Linked, CommunicatorSuite,
    testing::Values(LinkedBackend<MakeTcpPairOf, EachItsOwn>("tcp"),
                    LinkedBackend<MakeTcpPairOf, PairOf>("tcp_pairs"),
                    LinkedBackend<MakeShmPairOf, PairOf>("shm_pairs"),
                    SharingBackend<EachItsOwn>("shm_by_reference"),
                    SharingBackend<PairOf>("shm_pairs_by_reference")),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::comm

#include "gtest/gtest.h"
#include "tests/comm/links/link_suite.h"
#include "tests/comm/links/link_test_util.h"

namespace troupe::comm {
namespace {

INSTANTIATE_TEST_SUITE_P(All, LinkTest,
                         testing::Values(LinkKind{"Tcp", &MakeTcpPair},
                                         LinkKind{"Unix", &MakeUnixPair},
                                         LinkKind{"Tls", &MakeTlsPair},
                                         LinkKind{"Shm", &MakeShmPair},
                                         LinkKind{"RemappedShm",
                                                  &MakeRemappedShmPair}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::comm

// Runs the suite on groups that span processes, over links of Open MPI.

#include "gtest/gtest.h"
#include "tests/comm/communicator_suite.h"
#include "tests/comm/links/linked_group.h"
#include "tests/comm/links/mpi_pair.h"

namespace troupe::comm {
namespace {

// Returns no backend where Open MPI is missing.
std::vector<Backend> Backends() {
  if (MakeMpiPair().a == nullptr) return {};
  return {LinkedBackend<MakeMpiPairOf, PairOf>("mpi_pairs")};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommunicatorSuite);
INSTANTIATE_TEST_SUITE_P(Linked, CommunicatorSuite,
                         testing::ValuesIn(Backends()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::comm

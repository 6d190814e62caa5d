#include "comm/local/local_group.h"

#include "tests/comm/communicator_suite.h"

namespace troupe::comm {
namespace {

Ranks MakeRanks(int size) {
  LocalGroupOptions options;
  options.size = size;
  return MakeLocalGroup(options);
}

INSTANTIATE_TEST_SUITE_P(Local, CommunicatorSuite,
                         testing::Values(Backend{"local", MakeRanks}));

}  // namespace
}  // namespace troupe::comm

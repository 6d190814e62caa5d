// Two ends of a link over Open MPI, both in this process.
//
//   LinkPair pair = MakeMpiPair();             // of processes 0 and 1
//   if (pair.a == nullptr) GTEST_SKIP() << "Open MPI is not here";

#ifndef TESTS_COMM_LINKS_MPI_PAIR_H_
#define TESTS_COMM_LINKS_MPI_PAIR_H_

#include "tests/comm/links/link_test_util.h"

namespace troupe::comm {

// No ends: this build has no MPI, or this machine.
LinkPair MakeMpiPair();
// Of process `a`, to process `b`, and back.
LinkPair MakeMpiPairOf(int a, int b);

}  // namespace troupe::comm

#endif  // TESTS_COMM_LINKS_MPI_PAIR_H_

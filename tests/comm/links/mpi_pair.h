// Two ends of a link over Open MPI, both in this process.
//
//   LinkPair pair = MakeMpiPair();             // of processes 0 and 1
//   if (pair.a == nullptr) GTEST_SKIP() << "Open MPI is not here";

#ifndef TESTS_COMM_LINKS_MPI_PAIR_H_
#define TESTS_COMM_LINKS_MPI_PAIR_H_

#include "tests/comm/links/link_test_util.h"

namespace troupe::comm {

// Returns null ends where the build has no MPI or MPI cannot be started. No
// other pair shares its context, which a test may break.
LinkPair MakeMpiPair();
// Returns a link between processes `a` and `b`: end a is that of process `a`.
// All of these share a context.
LinkPair MakeMpiPairOf(int a, int b);

}  // namespace troupe::comm

#endif  // TESTS_COMM_LINKS_MPI_PAIR_H_

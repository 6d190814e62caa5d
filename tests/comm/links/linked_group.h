// Makes a group whose ranks belong to several processes of a job, all simulated
// in this test process. Each has a fabric with its own thread, and real links.
//
//   Ranks ranks = MakeLinkedGroup(&MakeTcpPairOf, /*process_of=*/{0, 0, 1});

#ifndef TESTS_COMM_LINKS_LINKED_GROUP_H_
#define TESTS_COMM_LINKS_LINKED_GROUP_H_

#include <memory>
#include <vector>

#include "comm/link.h"
#include "tests/comm/communicator_suite.h"
#include "tests/comm/links/link_test_util.h"

namespace troupe::comm {

// Makes both ends of a link between processes `a` and `b`.
using PairFactory = LinkPair (*)(int a, int b);
LinkPair MakeTcpPairOf(int a, int b);
LinkPair MakeShmPairOf(int a, int b);

// Links of each process, indexed by process and peer; null for itself.
using AllLinks = std::vector<std::vector<std::unique_ptr<Link>>>;

// Makes a group over these links; the ranks keep the fabrics alive.
Ranks MakeGroupOver(AllLinks links, const std::vector<int>& process_of);
Ranks MakeLinkedGroup(PairFactory make_pair,
                      const std::vector<int>& process_of);
// The same over shared memory: ranges in SharedTensors() are sent by reference.
// Ranges in files that existed before the call are lent already, so that even
// the first collective does so.
Ranks MakeSharingGroup(const std::vector<int>& process_of);
nn::Allocator& SharedTensors();

// Functions from rank to process: two ranks in each process, or one.
inline int PairOf(int rank) { return rank / 2; }
inline int EachItsOwn(int rank) { return rank; }
template <PairFactory kMakePair, int (*kProcessOf)(int rank)>
Backend LinkedBackend(const char* name) {
  return {name,
          [](int size) {
            std::vector<int> process_of;
            for (int r = 0; r < size; ++r) process_of.push_back(kProcessOf(r));
            return MakeLinkedGroup(kMakePair, process_of);
          },
          /*immediate=*/false,
          [](int size) { return 1 + kProcessOf(size - 1); }};
}

template <int (*kProcessOf)(int rank)>
Backend SharingBackend(const char* name) {
  Backend backend = LinkedBackend<&MakeShmPairOf, kProcessOf>(name);
  backend.make = [](int size) {
    std::vector<int> process_of;
    for (int r = 0; r < size; ++r) process_of.push_back(kProcessOf(r));
    return MakeSharingGroup(process_of);
  };
  backend.memory = &SharedTensors;
  return backend;
}

}  // namespace troupe::comm

#endif  // TESTS_COMM_LINKS_LINKED_GROUP_H_

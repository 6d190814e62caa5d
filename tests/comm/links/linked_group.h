// A group that spans processes, all of them in this test: a fabric for each,
// with its own thread, over links of a kind.
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

// A link of process `a` to process `b`, and back.
using PairFactory = LinkPair (*)(int a, int b);
LinkPair MakeTcpPairOf(int a, int b);
LinkPair MakeShmPairOf(int a, int b);

// The links of each process by the number of the other; null for itself.
using AllLinks = std::vector<std::vector<std::unique_ptr<Link>>>;

// The fabrics live as long as the ranks.
Ranks MakeGroupOver(AllLinks links, const std::vector<int>& process_of);
Ranks MakeLinkedGroup(PairFactory make_pair,
                      const std::vector<int>& process_of);
// The same over shared memory; ranges in SharedTensors() go by reference, those
// in the files that there were before from the first collective on.
Ranks MakeSharingGroup(const std::vector<int>& process_of);
nn::Allocator& SharedTensors();

// Two ranks in each process, and one; and how many processes these are.
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

// Conformance tests that every Communicator must pass, independent of its
// transport. A backend joins with
//
//   INSTANTIATE_TEST_SUITE_P(Local, CommunicatorSuite,
//                            testing::Values(Backend{"local", MakeRanks}));
//
// and a dependency on :communicator_suite. All ranks live in this process. A
// test drives them either with one thread per rank, or step by step in a single
// thread, in an order that a seed chooses. Failures name seed and rank.

#ifndef TESTS_COMM_COMMUNICATOR_SUITE_H_
#define TESTS_COMM_COMMUNICATOR_SUITE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "comm/communicator.h"
#include "gtest/gtest.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm {

// Time-out that no passing test reaches.
inline constexpr absl::Duration kTimeout = absl::Minutes(5);

using Ranks = std::vector<std::unique_ptr<Communicator>>;

struct Backend {
  std::string name;
  // Makes a new group of `size` ranks.
  Ranks (*make)(int size);
  // Whether the effect of a call has reached the peers when it returns. If
  // false, a test must drive the ranks first.
  bool immediate = true;
  // Returns the number of processes that a group of `size` ranks spans; null:
  // one process.
  int (*processes)(int size) = nullptr;
  // Returns the allocator of the ranges; null: ordinary host memory.
  nn::Allocator& (*memory)() = nullptr;
};

inline std::ostream& operator<<(std::ostream& out, const Backend& backend) {
  return out << backend.name;
}

// Number of floats that no transport copies eagerly: a send of this length
// waits for its receiver.
inline constexpr std::int64_t kLongCount = 10000;

class CommunicatorSuite : public testing::TestWithParam<Backend> {
 protected:
  Ranks Make(int size) const { return GetParam().make(size); }
  int Processes(int size) const {
    return GetParam().processes ? GetParam().processes(size) : 1;
  }

  // Runs `body` in a thread for each rank.
  static void InThreads(
      const Ranks& ranks,
      const std::function<void(Communicator&, int rank)>& body);

  // Drives one rank until `event` is ready, and returns its status.
  static absl::Status Await(Communicator& comm, const Event& event) {
    return comm::Await(comm, event, kTimeout);
  }

  // Drives ranks in one thread, chosen by `seed`, until all events are ready.
  static void Step(const Ranks& ranks, std::uint64_t seed,
                   const std::vector<Event>& events);

  // Drives `comm` until `event` is ready, unless the backend is `immediate`.
  void Reach(Communicator& comm, const Event& event) const {
    if (!GetParam().immediate) (void)Await(comm, event);
  }

  // Returns a range of `count` floats, all equal to `first` + `rank`.
  nn::Tensor Floats(float first, int rank, std::int64_t count = 4);

  nn::CachingAllocator ordinary_;
  nn::Allocator& allocator_ =
      GetParam().memory ? GetParam().memory() : ordinary_;
};

}  // namespace troupe::comm

#endif  // TESTS_COMM_COMMUNICATOR_SUITE_H_

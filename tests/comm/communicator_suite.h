// What every Communicator must do, whatever its transport. A backend joins with
//
//   INSTANTIATE_TEST_SUITE_P(Local, CommunicatorSuite,
//                            testing::Values(Backend{"local", MakeRanks}));
//
// and a dependency on :communicator_suite. All ranks live in this process; each
// test drives them either by a thread for each or step by step in one thread,
// in an order that a seed chooses. Failures name seed and rank.

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

// Longer than any test; none waits for it.
inline constexpr absl::Duration kTimeout = absl::Minutes(5);

using Ranks = std::vector<std::unique_ptr<Communicator>>;

struct Backend {
  std::string name;
  // A fresh group of so many ranks.
  Ranks (*make)(int size);
  // What a rank does has reached its peers when the call returns; otherwise
  // they are to be driven first.
  bool immediate = true;
  // Processes that such a group spans; null: one.
  int (*processes)(int size) = nullptr;
  // Where the ranges lie; null: in memory like any other.
  nn::Allocator& (*memory)() = nullptr;
};

inline std::ostream& operator<<(std::ostream& out, const Backend& backend) {
  return out << backend.name;
}

// Floats that no transport takes a copy of at once: who sends them waits.
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

  // Drives `comm` until `event` is ready, where that is not so at once.
  void Reach(Communicator& comm, const Event& event) const {
    if (!GetParam().immediate) (void)Await(comm, event);
  }

  // One small range of floats; rank r holds `first` + r.
  nn::Tensor Floats(float first, int rank, std::int64_t count = 4);

  nn::CachingAllocator ordinary_;
  nn::Allocator& allocator_ =
      GetParam().memory ? GetParam().memory() : ordinary_;
};

}  // namespace troupe::comm

#endif  // TESTS_COMM_COMMUNICATOR_SUITE_H_

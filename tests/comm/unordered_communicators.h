// Communicators with a deliberate bug in the order of a device's work, for
// tests that must find it: collectives that do not wait for what they read, and
// collectives after which nobody waits.
//
//   Group group = WithBug<TooEarly>(MakeDeviceGroup(options));

#ifndef TESTS_COMM_UNORDERED_COMMUNICATORS_H_
#define TESTS_COMM_UNORDERED_COMMUNICATORS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "comm/communicator.h"
#include "tests/comm/wrapped_communicator.h"

namespace troupe::comm {

// A bug: collectives do not wait for the work that writes what they read.
class TooEarly : public WrappedCommunicator {
 public:
  using WrappedCommunicator::WrappedCommunicator;
  absl::StatusOr<Event> Start(const Collective& collective, Event) override {
    return inner().Start(collective, Event());
  }
};

// A bug: collectives report their end when they start.
class DoneAtOnce : public WrappedCommunicator {
 public:
  using WrappedCommunicator::WrappedCommunicator;
  absl::StatusOr<Event> Start(const Collective& collective,
                              Event after) override {
    TROUPE_RETURN_IF_ERROR(
        inner().Start(collective, std::move(after)).status());
    return Event();
  }
};

// Returns the group with the bug in each rank's communicator.
template <typename Bug>
std::vector<std::unique_ptr<Communicator>> WithBug(
    std::vector<std::unique_ptr<Communicator>> group) {
  for (auto& rank : group) rank = std::make_unique<Bug>(std::move(rank));
  return group;
}

}  // namespace troupe::comm

#endif  // TESTS_COMM_UNORDERED_COMMUNICATORS_H_

// Runs the suite on groups whose processes connect as those of a job do, on one
// host and on several.

#include <cstddef>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "comm/memory_store.h"
#include "gtest/gtest.h"
#include "tests/comm/communicator_suite.h"
#include "tests/comm/links/linked_group.h"
#include "tests/comm/links/meeting.h"
#include "tools/network/network_hosts.h"

namespace troupe::comm {
namespace {

// Makes a group with two ranks in each process; each process connects in a
// thread of its own.
template <std::size_t kMeeting>
Ranks MakeRanks(int size) {
  std::vector<int> process_of;
  for (int r = 0; r < size; ++r) process_of.push_back(PairOf(r));
  MemoryStore store;
  AllLinks links(size == 0 ? 0 : 1 + PairOf(size - 1));
  std::vector<std::thread> threads;
  for (std::size_t process = 0; process < links.size(); ++process) {
    threads.emplace_back([&links, &store, process] {
      links[process] = Meet(kMeetings[kMeeting], static_cast<int>(process),
                            static_cast<int>(links.size()), store);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return MakeGroupOver(std::move(links), process_of);
}

// Returns the backends whose hosts can be made on this machine. A meeting that
// lends memory would repeat another one here: these groups share no ranges
// (linked_group_test has groups that do).
template <std::size_t... kMeeting>
std::vector<Backend> BackendsOf(std::index_sequence<kMeeting...>) {
  std::vector<Backend> backends;
  const auto add = [&backends](const Meeting& meeting, Ranks (*make)(int)) {
    if (meeting.lends || !Prepare(meeting).ok()) return;
    backends.push_back({meeting.name, make, /*immediate=*/false,
                        [](int size) { return 1 + PairOf(size - 1); }});
  };
  (add(kMeetings[kMeeting], &MakeRanks<kMeeting>), ...);
  return backends;
}

std::vector<Backend> Backends() {
  return BackendsOf(std::make_index_sequence<std::size(kMeetings)>());
}

INSTANTIATE_TEST_SUITE_P(Connected, CommunicatorSuite,
                         testing::ValuesIn(Backends()),
                         [](const auto& info) { return info.param.name; });

TEST(ConnectedGroup, HasAllMeetings) {
  for (const Meeting& meeting : kMeetings) {
    const absl::Status prepared = Prepare(meeting);
    if (network::NetworkHosts::CannotBeHere(prepared)) {
      GTEST_SKIP() << "skipped: " << meeting.name << ": " << prepared.message();
    }
    EXPECT_TRUE(prepared.ok()) << prepared;
  }
}

}  // namespace
}  // namespace troupe::comm

#include "actors/program/program_groups.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "comm/device/queued_communicator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A communicator that waits for a rank, and keeps the status that ends it.
class Waiter final : public comm::QueuedCommunicator {
 public:
  Waiter(int rank, int size, comm::Waiting waiting)
      : QueuedCommunicator("a group of the test"),
        rank_(rank),
        size_(size),
        waiting_(std::move(waiting)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::StatusOr<comm::Event> Start(const comm::Collective&,
                                    comm::Event) override {
    return comm::Event();
  }
  std::vector<comm::Waiting> Waits() const override { return {waiting_}; }
  void Abort(absl::Status status) override { ended.Update(status); }

  absl::Status ended;

 private:
  const int rank_;
  const int size_;
  const comm::Waiting waiting_;
};

// Returns a maker of groups whose first rank is here, and waits for the second,
// which is in another process.
GroupMaker GroupsThatWait(bool certain) {
  return [certain](const comm::FabricGroupOptions& options) {
    comm::Waiting waiting;
    waiting.what = "a barrier";
    waiting.ranks = {1};
    waiting.certain = certain;
    comm::Group group(options.ranks.size());
    group[0] = std::make_unique<Waiter>(
        0, static_cast<int>(options.ranks.size()), waiting);
    return absl::StatusOr<comm::Group>(std::move(group));
  };
}

TEST(ProgramGroupsTest, EndsWaitsForRanksThatHaveReturned) {
  ProgramGroups groups(2, GroupsThatWait(/*certain=*/true));
  const auto comm = *groups.Join(0, {0, 1});
  groups.AbortStale({false, true});
  const absl::Status& ended = static_cast<Waiter&>(*comm).ended;
  EXPECT_TRUE(ended.ok()) << "it may be over in a moment";
  groups.AbortStale({false, true});
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("rank 1 has returned"));
}

// A rank of another process, of which NCCL tells nothing, may have taken part
// before it returned.
TEST(ProgramGroupsTest, DoesNotBlameRanksThatMayHaveTakenPart) {
  ProgramGroups groups(2, GroupsThatWait(/*certain=*/false));
  const auto comm = *groups.Join(0, {0, 1});
  for (int look = 0; look < 3; ++look) groups.AbortStale({false, true});
  EXPECT_TRUE(static_cast<Waiter&>(*comm).ended.ok());
}

TEST(ProgramGroupsTest, GroupsOfTheSameRanksHaveNamesOfTheirOwn) {
  std::vector<std::string> names;
  const GroupMaker make = GroupsThatWait(/*certain=*/true);
  ProgramGroups groups(3, [&](const comm::FabricGroupOptions& options) {
    names.push_back(options.name);
    return make(options);
  });
  for (const std::vector<int>& members :
       std::vector<std::vector<int>>{{0, 1}, {0, 1}, {0, 2}, {0, 1}}) {
    EXPECT_TRUE(groups.Join(0, members).ok());
  }
  EXPECT_THAT(names,
              ElementsAre("{0, 1}", "{0, 1} (2)", "{0, 2}", "{0, 1} (3)"));
}

TEST(ProgramGroupsTest, KeepsGroupsOfRanksThatLeaveIfAskedTo) {
  for (const bool keeps : {false, true}) {
    ProgramGroups groups(2, GroupsThatWait(/*certain=*/true));
    if (keeps) groups.KeepUntilTheEnd();
    const std::weak_ptr<comm::Communicator> comm = *groups.Join(0, {0, 1});
    groups.Leave(0);
    EXPECT_EQ(comm.expired(), !keeps);
  }
}

}  // namespace
}  // namespace troupe::actors

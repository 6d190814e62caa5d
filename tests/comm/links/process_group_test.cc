// Tests groups whose ranks are processes, on one host and on several, connected
// as those of a job are. They give the bits of a single process; when one of
// them is killed, the others fail with an error.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/fabric.h"
#include "comm/shm/shared_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/comm/links/folder_store.h"
#include "tests/comm/links/link_test_util.h"
#include "tests/comm/links/meeting.h"
#include "tests/comm/moves.h"
#include "tools/network/network_hosts.h"

namespace troupe::comm {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Minutes(2);

// A job of `size` processes with a rank in each; they end with the test at the
// latest.
class Job {
 public:
  // Code of one process. It succeeds by returning without a test failure.
  using Body =
      std::function<void(Communicator& comm, nn::Allocator& allocator)>;

  Job(const Meeting& meeting, int size, const Body& body) : pids_(size) {
    std::fflush(nullptr);
    for (int process = 0; process < size; ++process) {
      pids_[process] = ::fork();
      if (pids_[process] != 0) continue;
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      RunChild(meeting, process, body);
      std::fflush(nullptr);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
  }
  ~Job() {
    for (pid_t pid : pids_) {
      if (pid <= 0) continue;
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void Kill(int process) const {
    ASSERT_EQ(::kill(pids_[process], SIGKILL), 0);
  }
  // Returns the exit status of the process, as waitpid(2) does.
  int Wait(int process) {
    int status = 0;
    EXPECT_EQ(::waitpid(pids_[process], &status, 0), pids_[process]);
    pids_[process] = -1;
    return status;
  }

 private:
  void RunChild(const Meeting& meeting, int process, const Body& body) {
    const int size = static_cast<int>(pids_.size());
    FabricOptions options;
    options.process = process;
    options.links = Meet(meeting, process, size, store_);
    const auto memory = std::make_shared<SharedMemory>();
    if (meeting.lends) {
      options.shared_memory = memory;
      options.eager_bytes = 0;
    }
    FabricGroupOptions group;
    group.name = "processes";
    for (int a = 0; a < size; ++a) {
      options.process_of.push_back(a);
      options.names.push_back(absl::StrCat("process ", a, " (this test)"));
      group.ranks.push_back(a);
    }
    const auto fabric = Fabric::Make(std::move(options));
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    const auto ranks = (*fabric)->MakeGroup(group);
    ASSERT_TRUE(ranks.ok()) << ranks.status();
    body(*(*ranks)[process], memory->allocator());
    EXPECT_EQ((*fabric)->by_reference() > 0, meeting.lends);
  }

  std::vector<pid_t> pids_;
  FolderStore store_;
};

class ProcessGroup : public testing::TestWithParam<Meeting> {
 protected:
  void SetUp() override {
    const absl::Status prepared = Prepare(GetParam());
    if (network::NetworkHosts::CannotBeHere(prepared)) {
      GTEST_SKIP() << "skipped: " << prepared.message();
    }
    ASSERT_TRUE(prepared.ok()) << prepared;
  }
};

// Runs the collectives of one rank, alternately inline and by an event.
void RunMoves(Communicator& comm, const std::vector<Move>& moves) {
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const Collective& mine = moves[i].collectives[comm.rank()];
    if ((i + comm.rank()) % 2 == 0) {
      EXPECT_EQ(comm.RunInline(mine, kTimeout), absl::OkStatus());
    } else {
      const absl::StatusOr<Event> event = comm.Start(mine, Event());
      ASSERT_TRUE(event.ok()) << event.status();
      EXPECT_EQ(Await(comm, *event, kTimeout), absl::OkStatus());
    }
    ExpectMovedTo(moves[i], comm.rank());
  }
}

void ExpectAllEndWell(Job* job, int size) {
  for (int process = 0; process < size; ++process) {
    EXPECT_EQ(job->Wait(process), 0) << "process " << process << " of " << size;
  }
}

TEST_P(ProcessGroup, HasTheBitsOfOneProcess) {
  for (int size : {2, 3, 5, 8}) {
    Job job(GetParam(), size,
            [&](Communicator& comm, nn::Allocator& allocator) {
              RunMoves(comm, MovesOf(size, {0, 1, 63, 1000}, allocator));
              EXPECT_TRUE(comm.RunInline(Barrier(), kTimeout).ok());
            });
    ExpectAllEndWell(&job, size);
  }
}

TEST_P(ProcessGroup, HasThemOfAMillionElements) {
  constexpr int kSize = 3;
  Job job(GetParam(), kSize, [](Communicator& comm, nn::Allocator& allocator) {
    // Where memory is lent, later rounds send memory that is used again by
    // reference.
    for (int round = 0; round < 3; ++round) {
      std::vector<Move> moves;
      for (CollectiveKind kind :
           {CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
            CollectiveKind::kReduce, CollectiveKind::kReduceScatter}) {
        moves.push_back(MakeMove({kind, kSize, 1 << 20}, allocator));
      }
      RunMoves(comm, moves);
    }
  });
  ExpectAllEndWell(&job, kSize);
}

// Expects that the calls of a surviving rank end within seconds, with an error
// that names the lost process.
void ExpectThePeerIsMissed(Communicator& comm, nn::Allocator& allocator,
                           bool with_events,
                           const std::function<void(int round)>& told) {
  const nn::Tensor range =
      nn::Tensor::Zeros({100000}, nn::DType::kF32, allocator);
  const nn::Tensor into = nn::Tensor::Zeros({8}, nn::DType::kF32, allocator);
  const Event received = comm.StartRecv(1, /*tag=*/5, into, nullptr).value();
  const Collective sum = AllReduce(ReduceOp::kMax, range);
  for (int round = 0;; ++round) {
    told(round);
    const auto begin = std::chrono::steady_clock::now();
    absl::Status status;
    if (with_events) {
      const absl::StatusOr<Event> event = comm.Start(sum, Event());
      status = event.ok() ? Await(comm, *event, kTimeout) : event.status();
    } else {
      status = comm.RunInline(sum, kTimeout);
    }
    if (status.ok()) continue;
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(10));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("process 1 (this test) is lost"));
    EXPECT_EQ(Await(comm, received, kTimeout).message(), status.message());
    return;
  }
}

TEST_P(ProcessGroup, OneThatIsKilledIsNamedByAllOthers) {
  constexpr int kSize = 4;
  SocketPair line = MakeSockets();
  Job job(GetParam(), kSize, [&](Communicator& comm, nn::Allocator& allocator) {
    ExpectThePeerIsMissed(comm, allocator, /*with_events=*/comm.rank() == 2,
                          [&](int round) {
                            if (comm.rank() != 1 || round != 20) return;
                            ASSERT_EQ(::write(line.a.get(), "x", 1), 1);
                          });
  });
  char x;
  ASSERT_EQ(::read(line.b.get(), &x, 1), 1);
  job.Kill(1);
  const int killed = job.Wait(1);
  EXPECT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL);
  for (int process : {0, 2, 3}) {
    EXPECT_EQ(job.Wait(process), 0) << "process " << process;
  }
}

INSTANTIATE_TEST_SUITE_P(Meetings, ProcessGroup, testing::ValuesIn(kMeetings),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace troupe::comm

// Spawn() with several processes: this program starts itself with the name of a
// case, and the case calls Spawn().

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/processes/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

// --- Cases ---

SpawnOptions Processes(int processes, int ranks) {
  SpawnOptions options;
  options.ranks = ranks;
  options.processes = processes;
  return options;
}

// Index of this process among those of a call; -1: it is their starter.
int OwnProcess() {
  const char* const number = getenv("TROUPE_PROCESS");
  return number == nullptr ? -1 : atoi(number);
}

int Told(const absl::Status& status) {
  printf("Spawn: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

int SumCase() {
  printf("main\n");
  const absl::Status status = Spawn(
      [](Rank& rank) {
        Var t = rank.Full({1000}, rank.number());
        AllReduce(t);
        rank.Print("sum %g in %d\n", t.tensor().data<float>()[999], getpid());
        fprintf(stderr, "LOCAL_RANK=%s\n", getenv("LOCAL_RANK"));
      },
      Processes(2, 5));
  return Told(status);
}

int ThrowCase() {
  return Told(Spawn(
      [](Rank& rank) {
        if (rank.number() == 2) throw std::runtime_error("no such file");
        Barrier(rank);
      },
      Processes(2, 3)));
}

// Rank 2 dies in the middle of many collectives.
int KillCase() {
  return Told(Spawn(
      [](Rank& rank) {
        Var t = rank.Ones({100000});
        for (int i = 0; i < 1000000; ++i) {
          if (rank.number() == 2 && i == 20) {
            rank.Print("dies at %d\n", absl::ToUnixMillis(absl::Now()));
            raise(SIGKILL);
          }
          const absl::Status status = Try([&] { AllReduce(t); });
          if (!status.ok()) {
            rank.Print("fails at %d\n", absl::ToUnixMillis(absl::Now()));
            throw StatusError(status);
          }
        }
      },
      Processes(3, 4)));
}

int ExitCase() {
  return Told(Spawn(
      [](Rank& rank) {
        if (rank.number() == 1) _exit(7);
        Barrier(rank);
      },
      Processes(2, 2)));
}

int OtherWayCase() {
  if (OwnProcess() == 1) {
    fprintf(stderr, "nothing to do\n");
    return 0;
  }
  return Told(Spawn([](Rank& rank) { Barrier(rank); }, Processes(2, 2)));
}

int OtherCountCase() {
  return Told(Spawn([](Rank& rank) { Barrier(rank); },
                    Processes(OwnProcess() == 1 ? 3 : 2, 4)));
}

int TwiceCase() {
  const auto name = [](const char* text) {
    return [text](Rank& rank) { rank.Print("%s\n", text); };
  };
  const absl::Status first = Spawn(name("first"), Processes(2, 2));
  const absl::Status threads = Spawn(name("threads"), /*ranks=*/2);
  const absl::Status second = Spawn(name("second"), Processes(2, 3));
  return Told(first) + Told(threads) + Told(second);
}

int NestedCase() {
  return Told(Spawn(
      [](Rank&) { throw StatusError(Spawn([](Rank&) {}, Processes(2, 2))); },
      Processes(2, 2)));
}

// Waits for a message that nobody sends.
int WaitCase() {
  return Told(Spawn(
      [](Rank& rank) {
        Barrier(rank);
        rank.Print("waits\n");
        Var t = rank.Ones({1});
        rank.world().Recv(t, 1 - rank.number());
      },
      Processes(2, 2)));
}

int MainCase() {
  SpawnOptions options = Processes(3, 0);
  return Main([](Rank& rank) { rank.Print("of %d\n", rank.size()); }, options);
}

const std::map<std::string, std::function<int()>>& Cases() {
  static const auto* const cases =
      new std::map<std::string, std::function<int()>>{
          {"sum", SumCase},
          {"throw", ThrowCase},
          {"kill", KillCase},
          {"exit", ExitCase},
          {"other way", OtherWayCase},
          {"other count", OtherCountCase},
          {"twice", TwiceCase},
          {"nested", NestedCase},
          {"wait", WaitCase},
          {"main", MainCase},
      };
  return *cases;
}

// --- Tests ---

struct Ended {
  int status = 0;      // result of waitpid()
  std::string output;  // both streams, up to the end of the last process
};

// Runs a case. `on_output`, if not null, gets the output so far and the process
// id, whenever there is more.
Ended RunCase(
    const std::string& name, const std::vector<std::string>& environment = {},
    const std::function<void(const std::string&, pid_t)>& on_output = nullptr) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  base::ChildSpec spec;
  spec.program = "/proc/self/exe";
  spec.command = {"spawn_test", "--case", name};
  spec.environment = environment;
  spec.out = spec.err = ends[1];
  const absl::StatusOr<pid_t> pid = base::StartChild(spec);
  EXPECT_TRUE(pid.ok()) << pid.status();
  close(ends[1]);
  Ended ended;
  char bytes[4096];
  // The pipe ends when no process has it open any more.
  for (ssize_t n; (n = read(ends[0], bytes, sizeof(bytes))) > 0;) {
    ended.output.append(bytes, n);
    if (on_output) on_output(ended.output, *pid);
  }
  close(ends[0]);
  EXPECT_EQ(waitpid(*pid, &ended.status, 0), *pid);
  return ended;
}

int CountOf(const std::string& text, const std::string& what) {
  const std::vector<std::string> parts = absl::StrSplit(text, what);
  return static_cast<int>(parts.size()) - 1;
}

TEST(SpawnTest, RanksAreSpreadOverProcesses) {
  const Ended ended = RunCase("sum");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(CountOf(ended.output, "main\n"), 3) << ended.output;
  EXPECT_EQ(CountOf(ended.output, "Spawn: OK\n"), 1) << ended.output;
  EXPECT_EQ(CountOf(ended.output, "LOCAL_RANK=0\n"), 3) << ended.output;
  EXPECT_EQ(CountOf(ended.output, "LOCAL_RANK=1\n"), 2) << ended.output;
  std::set<std::string> processes;
  for (int rank = 0; rank < 5; ++rank) {
    const std::string begin = absl::StrCat("[", rank, "] sum 10 in ");
    const std::size_t at = ended.output.find(begin);
    ASSERT_NE(at, std::string::npos) << ended.output;
    const std::string rest = ended.output.substr(at + begin.size());
    processes.insert(rest.substr(0, rest.find('\n')));
  }
  EXPECT_EQ(processes.size(), 2) << ended.output;
}

TEST(SpawnTest, AFailureComesOutOnce) {
  const Ended ended = RunCase("throw");
  EXPECT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 1);
  EXPECT_THAT(ended.output, StartsWith("Spawn: INTERNAL: rank 2: "));
  EXPECT_THAT(ended.output, HasSubstr("no such file"));
  EXPECT_EQ(CountOf(ended.output, "\n"), 1) << ended.output;
}

// The peers end within the promise of 2 s, here ten times as much.
TEST(SpawnTest, AKilledProcessIsNamedWithItsRanks) {
  const Ended ended = RunCase("kill");
  EXPECT_EQ(WEXITSTATUS(ended.status), 1);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("Spawn: UNAVAILABLE: rank 2: process 1 (pid "),
                    HasSubstr("was killed by SIGKILL"),
                    ContainsRegex("process [02] says: .*process 1")));
  // Lines of different processes come in any order.
  long long died = 0;
  std::vector<long long> failed;
  const std::vector<std::string> lines = absl::StrSplit(ended.output, '\n');
  for (const std::string& line : lines) {
    long long at = 0;
    int rank = 0;
    if (sscanf(line.c_str(), "[%d] dies at %lld", &rank, &at) == 2) died = at;
    if (sscanf(line.c_str(), "[%d] fails at %lld", &rank, &at) == 2) {
      failed.push_back(at);
    }
  }
  EXPECT_GT(died, 0) << ended.output;
  EXPECT_THAT(failed, SizeIs(3)) << ended.output;
  EXPECT_THAT(failed, Each(Lt(died + 20000)));
}

TEST(SpawnTest, AProcessThatExitsIsNamed) {
  EXPECT_THAT(RunCase("exit").output,
              AllOf(HasSubstr("Spawn: UNAVAILABLE: rank 1: process 1 "),
                    HasSubstr("with code 7")));
}

TEST(SpawnTest, MainComesToTheSameCallsInEachProcess) {
  EXPECT_THAT(RunCase("other way").output,
              AllOf(HasSubstr("Spawn: FAILED_PRECONDITION: process 1 (pid "),
                    HasSubstr("nothing to do: it has not come to call 1")));
  EXPECT_THAT(RunCase("other count").output,
              AllOf(HasSubstr("Spawn: FAILED_PRECONDITION: call 1 of Spawn()"),
                    HasSubstr("has 3 processes here and 2 where it began")));
}

TEST(SpawnTest, CallsAfterTheFirst) {
  const Ended ended = RunCase("twice");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(CountOf(ended.output, "] first\n"), 2) << ended.output;
  EXPECT_EQ(CountOf(ended.output, "] second\n"), 3) << ended.output;
  EXPECT_EQ(CountOf(ended.output, "Spawn: OK\n"), 3) << ended.output;
  // Ranks in threads run in each process that comes to their call.
  EXPECT_EQ(CountOf(ended.output, "] threads\n"), 2 * 3) << ended.output;
  EXPECT_THAT(RunCase("nested").output,
              AllOf(HasSubstr("Spawn: FAILED_PRECONDITION: rank"),
                    HasSubstr("leave processes at 1 here")));
}

TEST(SpawnTest, ASignalEndsAllProcesses) {
  for (int signal : {SIGTERM, SIGINT}) {
    bool sent = false;
    const Ended ended =
        RunCase("wait", {}, [&](const std::string& output, pid_t pid) {
          if (!sent && CountOf(output, "waits\n") == 2) {
            sent = kill(pid, signal) == 0;
          }
        });
    EXPECT_TRUE(sent);
    EXPECT_EQ(WEXITSTATUS(ended.status), 1);
    EXPECT_THAT(ended.output,
                HasSubstr(absl::StrCat("Spawn: CANCELLED: the processes were "
                                       "ended by SIG",
                                       signal == SIGTERM ? "TERM" : "INT")));
  }
}

// RunCase() returns when no process writes to its pipe any more.
TEST(SpawnTest, NoProcessIsLeftWhenTheStarterIsKilled) {
  bool sent = false;
  const Ended ended =
      RunCase("wait", {}, [&](const std::string& output, pid_t pid) {
        if (!sent && CountOf(output, "waits\n") == 2) {
          sent = kill(pid, SIGKILL) == 0;
        }
      });
  EXPECT_TRUE(sent);
  EXPECT_TRUE(WIFSIGNALED(ended.status));
  EXPECT_THAT(ended.output, Not(HasSubstr("Spawn:")));
}

TEST(SpawnTest, MainTakesTheLaunchersProcessesFirst) {
  const Ended ended = RunCase("main");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(CountOf(ended.output, "] of 3\n"), 3) << ended.output;
  const std::vector<std::string> launched = {"TROUPE_PROCESS=0",
                                             "TROUPE_PROCESSES=2",
                                             "TROUPE_LOCAL_PROCESS=0",
                                             "TROUPE_LOCAL_PROCESSES=2",
                                             "TROUPE_NODE=0",
                                             "TROUPE_NODES=1",
                                             "TROUPE_MASTER=127.0.0.1:9"};
  EXPECT_THAT(RunCase("sum", launched).output,
              AllOf(HasSubstr("launched by trainer launch: process 0 of 2"),
                    HasSubstr("use Main() in place of Spawn()")));
  EXPECT_THAT(RunCase("main", launched).output, HasSubstr("no certificate"));
}

// A program for several processes is simulated in one thread.
TEST(SpawnTest, TheSimulatorStartsNoProcesses) {
  int sums = 0;
  const SimulatedRun run = Simulate(
      [&](Rank& rank) {
        Var t = rank.Ones({1});
        AllReduce(t);
        sums += t.item() == 4;
      },
      Processes(2, 4));
  EXPECT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(sums, 4);
}

TEST(SpawnTest, OptionsThatNoProcessesCanHave) {
  const auto message = [](const SpawnOptions& options) {
    return std::string(Spawn([](Rank&) {}, options).message());
  };
  EXPECT_THAT(message(Processes(0, 1)), HasSubstr("at least 1, not 0"));
  EXPECT_THAT(
      message(Processes(3, 2)),
      HasSubstr("SpawnOptions.processes is 3 and SpawnOptions.ranks 2"));
  EXPECT_THAT(message(Processes(2000, 2000)), HasSubstr("1 to 256 ranks"));
  SpawnOptions placed = Processes(2, 2);
  placed.cluster.emplace();
  EXPECT_THAT(message(placed), HasSubstr("SpawnOptions.cluster"));
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  if (argc == 3 && strcmp(argv[1], "--case") == 0) {
    return troupe::Cases().at(argv[2])();
  }
  // A process of a case never runs the tests, which would start more.
  if (getenv("TROUPE_SPAWN") != nullptr) return 99;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

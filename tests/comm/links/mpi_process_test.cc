// Tests processes started by mpirun. This program runs itself under mpirun.

#include "comm/mpi/mpi_process.h"

#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/comm/links/link_test_util.h"

namespace troupe::comm {
namespace {

constexpr int kProcesses = 3;
constexpr char kWhy[] = "all is said";

const std::vector<std::size_t>& Sizes() {
  static const auto* const sizes = new std::vector<std::size_t>{
      0, 1, kMpiPackedBytesMax, kMpiPackedBytesMax + 1, 300'000, 1 << 20};
  return *sizes;
}

// The work of one process; Run() returns an error if an expectation fails.
class Worker {
 public:
  absl::Status Run(MpiProcess& mpi, std::uint32_t generation) {
    auto links = mpi.MakeLinks(generation);
    if (!links.ok()) return links.status();
    links_ = *std::move(links);
    const int me = mpi.process();
    if (mpi.processes() != kProcesses || links_[me] != nullptr) {
      return absl::InternalError("a link to each other process");
    }
    for (int i = 0; i < kProcesses; ++i) {
      sinks_.push_back(
          std::make_unique<RecordingSink>(RecordingSink::Places::kEverySecond));
      if (i != me) links_[i]->SetSink(sinks_[i].get());
    }
    SendAll(me);
    if (!PumpAll([&] { return All(me, &RecordingSink::count, Frames()); })) {
      return absl::DeadlineExceededError("frames did not come");
    }
    for (int i = 0; i < kProcesses; ++i) {
      if (i != me && !Check(*sinks_[i], i)) {
        return absl::DataLossError(absl::StrCat("what ", i, " sent differs"));
      }
    }
    return End(me);
  }

 private:
  static std::size_t Frames() { return 4 * Sizes().size(); }

  void SendAll(int me) {
    for (std::size_t i = 0; i < Frames(); ++i) {
      texts_.push_back(Text(Sizes()[i % Sizes().size()], 100 * me + i));
    }
    for (std::size_t i = 0; i < Frames(); ++i) {
      Frame frame;
      frame.seq = i;
      frame.bytes = static_cast<std::uint32_t>(texts_[i].size());
      for (const auto& link : links_) {
        if (link != nullptr) link->Send(frame, texts_[i].data(), &done_);
      }
    }
  }

  static bool Check(const RecordingSink& sink, int from) {
    const std::vector<RecordingSink::Got> all = sink.all();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string text =
          Text(Sizes()[i % Sizes().size()], 100 * from + i);
      if (all[i].frame.seq != i || all[i].payload != text) return false;
    }
    return sink.complaints().empty();
  }

  // Process 0 closes its links with a reason; the others receive it, and see
  // each other's links end.
  absl::Status End(int me) {
    if (!PumpAll([&] {
          return done_.count == static_cast<int>((kProcesses - 1) * Frames());
        })) {
      return absl::DeadlineExceededError("not all was sent");
    }
    for (int i = 1; me == 0 && i < kProcesses; ++i) {
      links_[i]->Close(absl::AbortedError(kWhy));
    }
    const auto lost = [&] {
      return me == 0 ? All(me, &RecordingSink::losses, 1)
                     : sinks_[0]->losses() == 1;
    };
    if (!PumpAll(lost)) return absl::DeadlineExceededError("no end came");
    const absl::Status why = sinks_[me == 0 ? 1 : 0]->why();
    return why == absl::AbortedError(kWhy) ? absl::OkStatus() : why;
  }

  template <typename Number, typename Want>
  bool All(int me, Number (RecordingSink::*number)() const, Want want) const {
    for (int i = 0; i < kProcesses; ++i) {
      if (i != me && ((*sinks_[i]).*number)() != static_cast<Number>(want)) {
        return false;
      }
    }
    return true;
  }

  bool PumpAll(const std::function<bool()>& done) {
    std::size_t next = 0;
    return Pump({}, [&] {
      for (const auto& link : links_) {
        if (link != nullptr) link->Progress();
      }
      return ++next > 0 && done();
    });
  }

  CountDone done_;
  std::vector<std::string> texts_;
  std::vector<std::unique_ptr<RecordingSink>> sinks_;
  std::vector<std::unique_ptr<Link>> links_;
};

int WorkerMain() {
  absl::StatusOr<std::unique_ptr<MpiProcess>> mpi = MpiProcess::Start();
  absl::Status status = mpi.status();
  // The second generation must not receive frames left over from the first.
  for (std::uint32_t generation = 0; generation < 2; ++generation) {
    if (status.ok()) status = Worker().Run(**mpi, generation);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

// Exit code of success: mpirun reports a failure of its own if a process exits
// with 0 without having finalized MPI.
constexpr int kGaveUp = 7;

// Process 1 does not initialize MPI before process 0 has given up waiting for
// it, because its `check` returned an error. Process 0 reports that through
// `fifo`.
int LateMain(const std::string& fifo) {
  if (std::getenv("OMPI_COMM_WORLD_RANK") != std::string("0")) {
    return std::ifstream(fifo).get() == 'y' ? kGaveUp : 1;
  }
  const absl::Status told = absl::AbortedError("process 1 is lost");
  int asked = 0;
  const absl::Status first = MpiProcess::Start(absl::InfiniteDuration(), [&] {
                               return ++asked < 3 ? absl::OkStatus() : told;
                             }).status();
  const bool well = first == told && asked == 3;
  if (!well) std::fprintf(stderr, "%s\n", first.ToString().c_str());
  std::ofstream(fifo) << (well ? 'y' : 'n');
  std::fflush(nullptr);
  std::_Exit(well ? kGaveUp : 1);  // a thread still waits in MPI_Init
}

// Waits until the process has been stopped; its parent ends this one if it is
// not, after a minute.
void AwaitStop(std::uint64_t pid) {
  for (;;) {
    std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
    std::string number, name;
    char state = ' ';
    stat >> number >> name >> state;
    if (state == 'T') return;
    sched_yield();
  }
}

// Process 0 sends payloads to process 1, which is stopped, ends the link, and
// uses their memory for something else. Process 1 goes on after that.
bool SendsToAStopped(Link* link, RecordingSink* sink) {
  Pump({link}, [&] { return sink->count() == 1; });
  const std::uint64_t pid = sink->last().frame.words[0];
  link->Send(Frame(), nullptr, nullptr);
  AwaitStop(pid);
  std::string text(1 << 20, 'a');
  Frame frame;
  frame.bytes = static_cast<std::uint32_t>(text.size());
  CountDone done;
  for (int i = 0; i < 3; ++i) link->Send(frame, text.data(), &done);
  const bool lent = done.count == 0;
  link->Close(absl::AbortedError(kWhy));
  const bool given_back = done.count == 3;
  text.assign(text.size(), 'b');
  ::kill(static_cast<pid_t>(pid), SIGCONT);
  return lent && given_back;
}

bool IsStopped(Link* link, RecordingSink* sink) {
  Frame frame;
  frame.words[0] = ::getpid();
  link->Send(frame, nullptr, nullptr);
  Pump({link}, [&] { return sink->count() == 1; });
  std::raise(SIGSTOP);
  Pump({link}, [&] { return sink->losses() == 1; });
  return sink->count() == 1 && sink->why() == absl::AbortedError(kWhy);
}

// Process 1 reports through `fifo`; process 0, whose memory it may read, stays
// until then.
int StoppedMain(const std::string& fifo) {
  absl::StatusOr<std::unique_ptr<MpiProcess>> mpi = MpiProcess::Start();
  if (!mpi.ok()) return 1;
  const int me = (*mpi)->process();
  auto links = (*mpi)->MakeLinks(/*generation=*/0);
  if (!links.ok()) return 1;
  Link* const link = (*links)[1 - me].get();
  RecordingSink sink(RecordingSink::Places::kAlways);
  link->SetSink(&sink);
  bool well = false;
  if (me == 0) {
    well = SendsToAStopped(link, &sink);
    well &= std::ifstream(fifo).get() == 'y';
  } else {
    well = IsStopped(link, &sink);
    std::ofstream(fifo) << (well ? 'y' : 'n');
  }
  std::fflush(nullptr);
  std::_Exit(well ? kGaveUp : 1);  // MPI is broken
}

// Returns the exit code of this program under mpirun.
int RunUnderMpirun(int processes, const std::string& transport,
                   const std::string& words) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = absl::StrCat(
      "timeout 60 mpirun --allow-run-as-root --oversubscribe --bind-to none "
      "--mca oob_tcp_if_include lo --mca btl_tcp_if_include lo --mca pml ob1 "
      "--mca btl ",
      transport, ",self -n ", processes, " ", self, " ", words);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class MpiProcessTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::system("command -v mpirun >/dev/null") != 0) {
      GTEST_SKIP() << "skipped: there is no mpirun; install openmpi-bin";
    }
  }
};

TEST_P(MpiProcessTest, ProcessesTalkToEachOther) {
  EXPECT_EQ(RunUnderMpirun(kProcesses, GetParam(), "--worker"), 0);
}

TEST_P(MpiProcessTest, OneThatWaitsForOthersCanGiveUp) {
  const std::string fifo =
      absl::StrCat(testing::TempDir(), "/fifo_", ::getpid(), GetParam());
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(RunUnderMpirun(2, GetParam(), absl::StrCat("--late ", fifo)),
            kGaveUp);
  ::unlink(fifo.c_str());
}

TEST_P(MpiProcessTest, OneThatWasStoppedTakesNoMemoryThatWasGivenBack) {
  const std::string fifo =
      absl::StrCat(testing::TempDir(), "/stop_", ::getpid(), GetParam());
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(RunUnderMpirun(2, GetParam(), absl::StrCat("--stopped ", fifo)),
            kGaveUp);
  ::unlink(fifo.c_str());
}

INSTANTIATE_TEST_SUITE_P(Ways, MpiProcessTest, testing::Values("vader", "tcp"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace troupe::comm

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--worker") {
    return troupe::comm::WorkerMain();
  }
  if (argc > 2 && std::string(argv[1]) == "--late") {
    return troupe::comm::LateMain(argv[2]);
  }
  if (argc > 2 && std::string(argv[1]) == "--stopped") {
    return troupe::comm::StoppedMain(argv[2]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

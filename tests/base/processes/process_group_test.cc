#include "base/processes/process_group.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "tests/base/fresh_path.h"
#include "tests/base/processes/fill_pipe.h"

namespace troupe::base {
namespace {

// Exit code of processes that stopped as they were asked to.
constexpr int kStopped = 3;

// Children are shell scripts. Each has a named pipe as file 7, which stays
// empty unless another child writes to it.
class ProcessGroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.stopped_code = kStopped;
    root_ = FreshPath();
    ASSERT_TRUE(files_.CreateFolder(root_).ok());
    for (int i = 0; i < 2; ++i) ASSERT_EQ(mkfifo(Fifo(i).c_str(), 0600), 0);
    options_.out = open((root_ + "/out").c_str(), O_RDWR | O_CREAT, 0600);
    options_.err = open((root_ + "/err").c_str(), O_RDWR | O_CREAT, 0600);
  }
  void TearDown() override {
    close(options_.out);
    close(options_.err);
  }

  std::string Fifo(int number) const {
    return absl::StrCat(root_, "/fifo", number);
  }

  void Add(const std::string& script) {
    JobProcess process;
    process.number = static_cast<int>(processes_.size());
    // Opens both ends, so that reads never see the end of the file.
    process.child.command = {
        "/bin/sh", "-c",
        absl::StrCat("exec 7<>", Fifo(process.number), "; ", script)};
    process.child.environment = {"PATH=/usr/bin:/bin"};
    processes_.push_back(process);
  }
  // Returns "code: words", with "PID" in place of process ids.
  std::string Run() {
    const absl::StatusOr<GroupEnd> end = RunProcesses(processes_, options_);
    if (!end.ok()) return std::string(end.status().message());
    std::string words = end->words;
    const std::size_t pid = words.find("(pid ");
    if (pid != std::string::npos) {
      words.replace(pid + 5, words.find(')', pid) - pid - 5, "PID");
    }
    return absl::StrCat(end->exit_code, ": ", words);
  }
  std::string Out() { return *ReadWholeFile(files_, root_ + "/out", 1 << 20); }
  std::string Err() { return *ReadWholeFile(files_, root_ + "/err", 1 << 20); }

  PosixFileSystem files_;
  std::string root_;
  std::vector<JobProcess> processes_;
  GroupOptions options_;
};

// Script that waits and handles signals.
constexpr char kWait[] = "while :; do read line <&7; done";
// The same where a signal may come right before a read, which would not see it.
constexpr char kSpin[] = "while :; do :; done";

// A process that ends with code 0 has failed if its work is not complete.
TEST_F(ProcessGroupTest, IncompleteWorkIsAFailure) {
  options_.stopped_code.reset();
  options_.patience = absl::ZeroDuration();
  Add(kWait);
  Add("echo go away >&2");
  processes_[1].is_complete = [] { return false; };
  const absl::StatusOr<GroupEnd> end = RunProcesses(processes_, options_);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_code, 1);
  EXPECT_EQ(end->first_failure, 1);
  ASSERT_EQ(end->statuses.size(), 2);
  EXPECT_EQ(end->statuses[1], 0);
  EXPECT_TRUE(absl::StrContains(end->words, "with code 0: go away"))
      << end->words;
}

TEST_F(ProcessGroupTest, LinesWithoutMarks) {
  options_.marks_lines = false;
  Add("echo zero");
  Add("echo one; echo two >&2");
  EXPECT_EQ(Run(), "0: ");
  EXPECT_TRUE(absl::StrContains(Out(), "\none\n") ||
              absl::StartsWith(Out(), "one\n"))
      << Out();
  EXPECT_EQ(Err(), "two\n");
}

TEST_F(ProcessGroupTest, AnotherProgramHasOneCodeOfSuccess) {
  options_.stopped_code.reset();
  Add("exit 0");
  Add("echo what >&2; exit 3");
  const std::string said = Run();
  EXPECT_TRUE(absl::StartsWith(
      said, "3: process 1 (pid PID) failed first, with code 3: what"))
      << said;
}

// Process 0 fails because process 1 ended without it.
TEST_F(ProcessGroupTest, NamesWhoEndedBeforeTheFailure) {
  options_.stopped_code.reset();
  // It waits until process 1 has been reaped, and its id is free.
  Add("read other <&7; while kill -0 $other 2>/dev/null; do :; done; "
      "echo process 1 did not join >&2; exit 1");
  Add(absl::StrCat("echo $$ >", Fifo(0), "; exit 0"));
  EXPECT_EQ(Run(),
            "1: process 0 (pid PID) failed first, with code 1: process 1 did "
            "not join; process 1 had ended before, with code 0");
}

// Process 0 ends when it reads that process 1 has ended.
TEST_F(ProcessGroupTest, TellsThatAProcessEndedWhileOthersRun) {
  options_.stopped_code.reset();
  options_.patience = absl::Milliseconds(10);
  Add(absl::StrCat("while ! grep -q 'process 1 has ended' ", root_,
                   "/err; do :; done"));
  Add("exit 0");
  EXPECT_EQ(Run(), "0: ");
  EXPECT_EQ(Err(),
            "trainer: process 1 has ended, with code 0; others still run\n");
}

TEST_F(ProcessGroupTest, AllIsWell) {
  Add("exit 0");
  Add("exit 0");
  EXPECT_EQ(Run(), "0: ");
  EXPECT_EQ(Out(), "");
}

TEST_F(ProcessGroupTest, ProcessesRunAtTheSameTime) {
  Add("read line <&7; echo $line");
  Add(absl::StrCat("echo hello >", Fifo(0)));
  EXPECT_EQ(Run(), "0: ");
  EXPECT_EQ(Out(), "hello\n");
}

TEST_F(ProcessGroupTest, LinesAreMarked) {
  Add("echo zero; echo oops >&2");
  Add("printf 'one\\n\\ntwo'; echo oh >&2");
  EXPECT_EQ(Run(), "0: ");
  const std::string out = Out();
  EXPECT_TRUE(absl::StrContains(out, "zero\n")) << out;
  EXPECT_EQ(absl::StrReplaceAll(out, {{"zero\n", ""}}),
            "[1] one\n[1] \n[1] two\n");
  const std::string err = Err();
  EXPECT_TRUE(err == "oops\n[1] oh\n" || err == "[1] oh\noops\n") << err;
}

TEST_F(ProcessGroupTest, LinesOfATerminalClearTheBarBefore) {
  options_.on_terminal = options_.colored = true;
  Add("exit 0");
  Add("echo one");
  EXPECT_EQ(Run(), "0: ");
  EXPECT_EQ(Out(), "\r\x1b[K\x1b[32m[1]\x1b[0m one\n");
}

TEST_F(ProcessGroupTest, MuchOutputOfOneThatEndsAtOnce) {
  Add("exit 0");
  Add("i=0; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done");
  EXPECT_EQ(Run(), "0: ");
  std::string all;
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&all, "[1] ", i, "\n");
  EXPECT_EQ(Out(), all);
}

TEST_F(ProcessGroupTest, NobodyReads) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  signal(SIGPIPE, SIG_IGN);  // main() does so, too
  const int out = options_.out;
  options_.out = ends[1];
  Add("exit 0");
  Add("i=0; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done");
  EXPECT_EQ(Run(), "0: ");
  close(ends[1]);
  options_.out = out;
}

TEST_F(ProcessGroupTest, OutputInFiles) {
  Add("echo zero; echo oops >&2");
  Add("echo one; echo trainer: it broke >&2; exit 1");
  for (JobProcess& process : processes_) {
    process.output_file = absl::StrCat(root_, "/", process.number, ".log");
  }
  EXPECT_EQ(Run(),
            "1: process 1 (pid PID) failed first, with code 1: it broke");
  EXPECT_EQ(*ReadWholeFile(files_, root_ + "/0.log", 100), "zero\noops\n");
  EXPECT_EQ(Out() + Err(), "");
}

TEST_F(ProcessGroupTest, AFileThatCannotBe) {
  Add("exit 0");
  Add("exit 0");
  processes_[1].output_file = root_ + "/none/1.log";
  EXPECT_EQ(Run(), absl::StrCat("cannot create ", root_,
                                "/none/1.log: No such file or directory; check "
                                "the path"));
}

TEST_F(ProcessGroupTest, AProgramThatIsNotThere) {
  Add(kWait);
  Add("");
  processes_[1].child.command = {root_ + "/none"};
  EXPECT_EQ(Run(), absl::StrCat("cannot start ", root_,
                                "/none: No such file or directory; check the "
                                "path"));
  // The first has been killed and waited for.
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(ProcessGroupTest, TheFirstFailureCounts) {
  options_.patience = absl::Hours(1);
  Add(absl::StrCat("read line <&7; echo the other is gone >&2; exit 1"));
  Add(absl::StrCat("echo trainer: disk full >&2; echo go >", Fifo(0),
                   "; exit 4"));
  // Either may be found first, unless they end far apart.
  const std::string end = Run();
  EXPECT_TRUE(
      end == "4: process 1 (pid PID) failed first, with code 4: disk full" ||
      end ==
          "1: process 0 (pid PID) failed first, with code 1: the other is "
          "gone")
      << end;
}

TEST_F(ProcessGroupTest, ASignalComesBeforeWhatFollowsFromIt) {
  options_.patience = absl::Hours(1);
  Add("read line <&7; exit 1");
  // This one is killed, and the other notified, before either is found.
  Add(absl::StrCat("kill -STOP $PPID; echo go >", Fifo(0), "; kill -KILL $$"));
  // The stopped test is continued when both have ended.
  const pid_t waker = fork();
  if (waker == 0) {
    const pid_t parent = getppid();
    int status = 0;
    do {
      char path[64];
      snprintf(path, sizeof(path), "/proc/%d/stat", parent);
      FILE* stat = fopen(path, "r");
      char letter = '?';
      status = fscanf(stat, "%*d %*s %c", &letter);
      fclose(stat);
      if (letter == 'T') break;
    } while (status == 1);
    kill(parent, SIGCONT);
    _exit(0);
  }
  const std::string end = Run();
  EXPECT_TRUE(absl::StartsWith(end,
                               "137: process 1 (pid PID) was killed by "
                               "SIGKILL"))
      << end;
  waitpid(waker, nullptr, 0);
}

TEST_F(ProcessGroupTest, ASignalCameFirstThoughItIsFoundLater) {
  options_.patience = absl::Hours(1);
  Add("read line <&7; exit 1");
  // Ends when the other has been reaped.
  Add(absl::StrCat("other=$(cut -d' ' -f1 /proc/$PPID/task/$PPID/children); ",
                   "echo go >", Fifo(0), "; while kill -0 $other; do :; done ",
                   "2>/dev/null; kill -KILL $$"));
  const std::string end = Run();
  EXPECT_TRUE(absl::StartsWith(end,
                               "137: process 1 (pid PID) was killed by "
                               "SIGKILL"))
      << end;
}

TEST_F(ProcessGroupTest, TheOthersAreStopped) {
  options_.patience = absl::ZeroDuration();
  options_.last_patience = absl::Hours(1);
  Add(absl::StrCat("trap 'echo told; exit 3' TERM; echo >", Fifo(1), "; ",
                   kWait));
  Add("read line <&7; exit 1");
  EXPECT_EQ(Run(), "1: process 1 (pid PID) failed first, with code 1");
  EXPECT_EQ(Out(), "told\n");
}

TEST_F(ProcessGroupTest, OneThatStandsStillGoesOnToHearIt) {
  options_.patience = absl::ZeroDuration();
  options_.last_patience = absl::Hours(1);
  Add(absl::StrCat("trap 'echo told; exit 3' TERM; echo >", Fifo(1), "; ",
                   "kill -STOP $$; ", kWait));
  // Fails once the other is stopped.
  Add(absl::StrCat("read line <&7; until grep -q 'State:.T' /proc/$(cut -d' ' ",
                   "-f1 /proc/$PPID/task/$PPID/children)/status; do :; done; ",
                   "exit 1"));
  EXPECT_EQ(Run(), "1: process 1 (pid PID) failed first, with code 1");
  EXPECT_EQ(Out(), "told\n");
}

TEST_F(ProcessGroupTest, TheDeafAreKilled) {
  options_.patience = options_.last_patience = absl::Milliseconds(1);
  Add(absl::StrCat("trap '' TERM; echo >", Fifo(1), "; ", kWait));
  Add("read line <&7; exit 1");
  EXPECT_EQ(Run(), "1: process 1 (pid PID) failed first, with code 1");
}

TEST_F(ProcessGroupTest, ThoseThatStoppedHaveNotFailed) {
  Add("exit 3");
  Add("exit 0");
  EXPECT_EQ(Run(), "3: ");
}

TEST_F(ProcessGroupTest, ASignalIsHandedOnOnce) {
  // A second SIGINT would arrive before SIGTERM, which comes once both have
  // told of the first one.
  const std::string told = root_ + "/told";
  Add(absl::StrCat("trap 'echo int; until [ -e ", told,
                   " ]; do :; done; kill -TERM $PPID' INT; ",
                   "trap 'exit 3' TERM; read line <&7; kill -INT $PPID; ",
                   kSpin));
  Add(absl::StrCat("trap 'echo int; : >", told, "' INT; ",
                   "trap 'exit 3' TERM; echo >", Fifo(0), "; ", kSpin));
  EXPECT_EQ(Run(), "3: ");
  EXPECT_TRUE(Out() == "int\n[1] int\n" || Out() == "[1] int\nint\n") << Out();
}

TEST_F(ProcessGroupTest, WhoDiesOfItSaysNothing) {
  Add("kill -INT $PPID; read line <&7");
  EXPECT_EQ(Run(), "130: ");
}

// A batch system warns of its time limit so.
TEST_F(ProcessGroupTest, WarningsAreHandedOn) {
  std::string warned;
  for (const auto& [name, number] :
       {std::pair("USR1", SIGUSR1), std::pair("USR2", SIGUSR2),
        std::pair("XCPU", SIGXCPU)}) {
    processes_.clear();
    Add(absl::StrCat("trap 'echo warned; exit 3' ", name, "; kill -", name,
                     " $PPID; ", kWait));
    Add("read line <&7");
    EXPECT_EQ(Run(), absl::StrCat(128 + number, ": "));
    warned += "warned\n";
    EXPECT_EQ(Out(), warned);
  }
}

TEST_F(ProcessGroupTest, AStopDoesNotWaitForAReader) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  FillPipe(ends[1]);
  close(options_.out);
  options_.out = ends[1];
  options_.reader_patience = absl::Milliseconds(1);
  // The signal comes when both handle it. The line waits in this process, whose
  // output is full.
  Add(absl::StrCat("trap 'exit 3' INT; echo >", Fifo(1), "; ", kSpin));
  Add(absl::StrCat("trap 'exit 3' INT; read line <&7; echo line; ",
                   "kill -INT $PPID; ", kSpin));
  EXPECT_EQ(Run(), "3: ");
  close(ends[0]);
}

TEST_F(ProcessGroupTest, ChildrenAreNotInOurProcessGroup) {
  Add("set -- $(cat /proc/$$/stat); echo $5 $$");
  EXPECT_EQ(Run(), "0: ");
  const std::string out = Out();
  const std::size_t space = out.find(' ');
  EXPECT_EQ(out.substr(0, space) + "\n", out.substr(space + 1));
}

TEST_F(ProcessGroupTest, NoOrphanWhenTheLauncherIsKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (int i = 0; i < 2; ++i) {
    Add(absl::StrCat("trap '' TERM INT HUP; echo here >&", ends[1], "; ",
                     kWait));
    processes_.back().child.kept_files = {ends[1]};
  }
  const pid_t launcher = fork();
  if (launcher == 0) {
    static_cast<void>(RunProcesses(processes_, options_));
    _exit(0);
  }
  close(ends[1]);
  std::string here(10, ' ');
  for (std::size_t at = 0; at < here.size();) {
    const ssize_t n = read(ends[0], &here[at], here.size() - at);
    ASSERT_GT(n, 0);
    at += static_cast<std::size_t>(n);
  }
  EXPECT_EQ(here, "here\nhere\n");
  kill(launcher, SIGKILL);
  // The end of the pipe: no process has it open any more.
  EXPECT_EQ(read(ends[0], &here[0], 1), 0);
  waitpid(launcher, nullptr, 0);
  close(ends[0]);
}

TEST_F(ProcessGroupTest, CoresAreTheChildsOwn) {
  Add("grep Cpus_allowed_list /proc/$$/status");
  processes_[0].child.cores = {0};
  EXPECT_EQ(Run(), "0: ");
  EXPECT_EQ(Out(), "Cpus_allowed_list:\t0\n");
}

TEST_F(ProcessGroupTest, OtherFilesAreNotTheChilds) {
  const int ours = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int kept = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  Add(absl::StrCat("for f in ", ours, " ", kept,
                   "; do readlink /proc/$$/fd/$f || echo none; done"));
  processes_[0].child.kept_files = {kept};
  EXPECT_EQ(Run(), "0: ");
  EXPECT_EQ(Out(), "none\n/dev/zero\n");
  close(ours);
  close(kept);
}

}  // namespace
}  // namespace troupe::base

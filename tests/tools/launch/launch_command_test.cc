#include "tools/trainer/launch/launch_command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "tests/base/fresh_path.h"
#include "tools/trainer/commands/certs_command.h"

namespace troupe::tools {
namespace {

// The launched program is a shell script.
class LaunchCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = base::FreshPath();
    ASSERT_TRUE(files_.CreateFolder(root_).ok());
    context_.program = root_ + "/program";
    context_.now = absl::Now();
    context_.group.out =
        open((root_ + "/out").c_str(), O_RDWR | O_CREAT | O_APPEND, 0600);
  }
  void TearDown() override { close(context_.group.out); }

  // Returns the error, or the sorted lines of the output.
  std::string Run(const std::string& script,
                  const std::vector<std::string>& arguments,
                  std::vector<const char*> environment = {}) {
    const std::string text = absl::StrCat("#!/bin/sh\n", script, "\n");
    EXPECT_TRUE(base::WriteWholeFile(files_, context_.program, text).ok());
    EXPECT_EQ(chmod(context_.program.c_str(), 0700), 0);
    const absl::StatusOr<LaunchOptions> options = ParseLaunch(arguments);
    if (!options.ok()) return std::string(options.status().message());
    environment.push_back("PATH=/usr/bin:/bin");
    environment.push_back(nullptr);
    context_.environment = environment.data();
    const absl::StatusOr<base::GroupEnd> end = Launch(*options, context_);
    if (!end.ok()) return std::string(end.status().message());
    EXPECT_EQ(end->exit_code, 0) << end->words;
    std::vector<std::string> lines =
        absl::StrSplit(*base::ReadWholeFile(files_, root_ + "/out", 10000),
                       '\n', absl::SkipEmpty());
    std::sort(lines.begin(), lines.end());
    return absl::StrJoin(lines, "\n");
  }

  base::PosixFileSystem files_;
  std::string root_;
  LaunchContext context_;
};

constexpr char kSay[] =
    "echo $TROUPE_PROCESS/$TROUPE_PROCESSES "
    "local $TROUPE_LOCAL_PROCESS/$TROUPE_LOCAL_PROCESSES "
    "node $TROUPE_NODE/$TROUPE_NODES ranks $TROUPE_RANKS_PER_PROCESS "
    "certs $TROUPE_CERTS $@";

TEST_F(LaunchCommandTest, OneNode) {
  EXPECT_EQ(Run(kSay, {"--nproc-per-node=2", "--", "train", "--ranks=4"}),
            "0/2 local 0/2 node 0/1 ranks certs train --ranks=4\n"
            "[1] 1/2 local 1/2 node 0/1 ranks certs train --ranks=4");
}

TEST_F(LaunchCommandTest, SeveralNodes) {
  CertsOptions certs;
  certs.dir = root_ + "/certs";
  ASSERT_TRUE(MakeCerts(certs, context_.now).ok());
  const std::string node = certs.dir + "/node";
  EXPECT_EQ(Run(absl::StrCat(kSay, " at $TROUPE_MASTER"),
                {"--nproc-per-node", "2", "--nnodes=2", "--node-rank=1",
                 "--master=n1:29400", "--ranks-per-process=3",
                 "--certs=" + node, "--", "train"}),
            absl::StrCat("[2] 2/4 local 0/2 node 1/2 ranks 3 certs ", node,
                         " train at n1:29400\n"
                         "[3] 3/4 local 1/2 node 1/2 ranks 3 certs ",
                         node, " train at n1:29400"));
}

TEST_F(LaunchCommandTest, NodesOfAnotherLauncher) {
  const std::vector<const char*> slurm = {"SLURM_JOB_ID=7",
                                          "SLURM_STEP_ID=0",
                                          "SLURM_PROCID=1",
                                          "SLURM_NTASKS=2",
                                          "SLURM_NODEID=1",
                                          "SLURM_NNODES=2",
                                          "SLURM_LOCALID=0",
                                          "SLURM_STEP_NODELIST=n[1-2]",
                                          "SLURM_STEP_RESV_PORTS=17003",
                                          "SLURM_STEP_TASKS_PER_NODE=1(x2)"};
  const std::vector<std::string> arguments = {"--nproc-per-node=1", "--",
                                              "train", "--insecure-network"};
  EXPECT_EQ(Run("echo $TROUPE_PROCESS/$TROUPE_PROCESSES $TROUPE_MASTER",
                arguments, slurm),
            "[1] 1/2 n1:17003");
  std::vector<const char*> two_on_a_node = slurm;
  two_on_a_node.back() = "SLURM_STEP_TASKS_PER_NODE=2(x2)";
  EXPECT_EQ(Run(kSay, arguments, two_on_a_node),
            "launched by Slurm: process 1 of 2 on node 1 of 2, and there are 2 "
            "on this node: start \"trainer launch\" once on each node, or "
            "\"trainer train\" as often");
}

TEST_F(LaunchCommandTest, CertificatesAreThereAndOnNoDisk) {
  EXPECT_EQ(Run("IFS=,; for f in $TROUPE_CERT_FDS; do "
                "head -n1 /proc/self/fd/$f; stat -Lc %a /proc/self/fd/$f; done",
                {"--nproc-per-node=1", "--", "train"}),
            "-----BEGIN CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\n"
            "-----BEGIN PRIVATE KEY-----\n600\n600\n600");
  EXPECT_EQ(files_.List(root_)->size(), 2u);  // the program and its output
}

TEST_F(LaunchCommandTest, OutputInFiles) {
  EXPECT_EQ(Run("echo I am $TROUPE_PROCESS",
                {"--nproc-per-node=2", "--output-dir=" + root_ + "/a/logs",
                 "--bind=none", "--", "train"}),
            "");
  EXPECT_EQ(*base::ReadWholeFile(files_, root_ + "/a/logs/process-1.log", 100),
            "I am 1\n");
}

TEST_F(LaunchCommandTest, RefusesWhatDoesNotFit) {
  struct Case {
    std::vector<std::string> arguments;
    std::string said;
  };
  const std::string n = "--nproc-per-node=2";
  for (const Case& c : std::vector<Case>{
           {{"--", "train"},
            "how many processes is not said; write --nproc-per-node=2"},
           {{n},
            "what to start is not said; write -- train --config=FILE "
            "last"},
           {{n, "--", "ls"},
            "-- ls: must be train, and its options; start another program by "
            "--program=PATH"},
           {{n, "--config=a"},
            "unknown option --config; run \"trainer launch --help\" "
            "for a list, and options of train come after \"-- train\", those "
            "of a program after \"--\""},
           {{"--nproc-per-node=0", "--", "train"},
            "--nproc-per-node=0: must be a number from 1 to 4096"},
           {{n, "--bind=all", "--", "train"},
            "--bind=all: must be cores or none"},
           {{n, "--nnodes=2", "--node-rank=2", "--", "train"},
            "--node-rank=2 must be below --nnodes=2, since numbers begin with "
            "0"},
           {{n, "--nnodes=2", "--", "train"},
            "--nnodes=2 is set, but not which of them this is; add "
            "--node-rank=I, or let a launcher start it"},
           {{n, "--nnodes=2", "--node-rank=0", "--", "train"},
            "2 nodes, and no address where they meet; add --master=host:port "
            "with the host of process 0"},
           {{n, "--nnodes=2", "--node-rank=0", "--master=n1:7", "--", "train"},
            "several nodes need certificates: make them by \"trainer certs\", "
            "copy them to each node and add --certs=DIR"},
       }) {
    EXPECT_EQ(Run("exit 0", c.arguments), c.said);
  }
  EXPECT_EQ(Run("exit 0", {n, "--", "train"}, {"TROUPE_PROCESS=1"}),
            "TROUPE_PROCESS=1 is set: this is a process of a job already; "
            "start \"trainer train\" here");
}

constexpr char kSayAsTorchrun[] =
    "echo $RANK/$WORLD_SIZE local $LOCAL_RANK/$LOCAL_WORLD_SIZE node "
    "$GROUP_RANK/$GROUP_WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT process "
    "$TROUPE_PROCESS/$TROUPE_PROCESSES certs ${TROUPE_CERT_FDS:+made} \"$@\"";

// A program of the user's is this fixture's, too: a script at a path.
TEST_F(LaunchCommandTest, AnyProgramHasTorchrunsVariables) {
  const std::string program = "--program=" + context_.program;
  EXPECT_EQ(Run(kSayAsTorchrun,
                {program, "--nproc-per-node=2", "--nnodes=2", "--node-rank=1",
                 "--master=[fd00::7]:29400", "--", "--steps=3", "-v"},
                {"RANK=9"}),
            "[2] 2/4 local 0/2 node 1/2 at fd00::7:29400 process 2/4 certs "
            "--steps=3 -v\n"
            "[3] 3/4 local 1/2 node 1/2 at fd00::7:29400 process 3/4 certs "
            "--steps=3 -v");
}

TEST_F(LaunchCommandTest, AnyProgramOnOneNodeHasCertificatesAndAPort) {
  context_.group.err = context_.group.out;
  EXPECT_EQ(Run("case $MASTER_ADDR:$MASTER_PORT/$TROUPE_CERT_FDS in "
                "127.0.0.1:[0-9]*/[0-9]*,[0-9]*,[0-9]*) echo $# ok;; "
                "*) env;; esac",
                {"--program", context_.program, "--nproc-per-node=1"}),
            "0 ok");
}

TEST_F(LaunchCommandTest, TheTrainersOwnVariablesAreNotTorchruns) {
  EXPECT_EQ(Run("echo rank $RANK", {"--nproc-per-node=1", "--", "train"}),
            "rank");
}

TEST_F(LaunchCommandTest, RefusesAProgramThatCannotBeStarted) {
  const auto said = [this](const std::string& program) {
    return Run("exit 0", {"--nproc-per-node=1", "--program=" + program});
  };
  EXPECT_EQ(said(root_ + "/none"),
            absl::StrCat("--program=", root_,
                         "/none: No such file or directory; write the path of "
                         "a program"));
  EXPECT_EQ(said("no-such-program"),
            "--program=no-such-program is in no folder of PATH; write "
            "--program=./no-such-program for a program of this folder");
  EXPECT_EQ(said(root_ + "/"), absl::StrCat("--program=", root_,
                                            "/ is no file; write the path of a "
                                            "program"));
  const std::string text = root_ + "/train.py";
  ASSERT_TRUE(base::WriteWholeFile(files_, text, "print()\n").ok());
  ASSERT_EQ(chmod(text.c_str(), 0600), 0);
  EXPECT_EQ(said(text),
            absl::StrCat("--program=", text,
                         " is not executable; allow it by \"chmod +x ", text,
                         "\", or start its interpreter: --program=python3 -- ",
                         text));
  ASSERT_EQ(chmod(text.c_str(), 0700), 0);
  EXPECT_EQ(said(text),
            absl::StrCat("cannot start ", text,
                         ": it is no program for this machine, and no script "
                         "with an interpreter; add a first line such as "
                         "#!/bin/sh"));
  EXPECT_EQ(
      Run("exit 0", {"--nproc-per-node=1", "--program=" + context_.program},
          {"TROUPE_PROCESS=1"}),
      absl::StrCat("TROUPE_PROCESS=1 is set: this is a process of a job "
                   "already; start \"",
                   context_.program, "\" here"));
}

TEST_F(LaunchCommandTest, LooksForAProgramInThePath) {
  EXPECT_EQ(Run("", {"--nproc-per-node=1", "--program=echo", "--", "a", "b"}),
            "a b");
}

}  // namespace
}  // namespace troupe::tools

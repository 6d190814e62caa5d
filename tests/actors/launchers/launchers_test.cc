#include "actors/launchers/launchers.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/actors/launchers/launcher_environments.h"

namespace troupe::actors {
namespace {

TEST(LaunchersTest, NobodyLaunchedIt) {
  Check({
      {"nothing is set", {}, {}, ": 0/1 local 0/1 node 0/1"},
      {"of another program",
       {{"RANK", "gold"}},
       {},
       ": 0/1 local 0/1 node 0/1"},
      {"an empty one is none",
       {{"JOB_COMPLETION_INDEX", ""}},
       {},
       ": 0/1 local 0/1 node 0/1"},
  });
}

TEST(LaunchersTest, ByHand) {
  Check({
      {"all is said",
       {},
       {{"--process", "1"}, {"--processes", "2"}, {"--master", "n1:29400"}},
       "hand: 1/2 local 0/1 node 1/2 at n1:29400"},
      {"an address in brackets",
       {},
       {{"--process", "1"}, {"--processes", "2"}, {"--master", "[::1]:7"}},
       "hand: 1/2 local 0/1 node 1/2 at [::1]:7"},
      {"one process meets nobody",
       {},
       {{"--process", "0"}, {"--processes", "1"}, {"--master", "n1:29400"}},
       "hand: 0/1 local 0/1 node 0/1"},
      {"no address",
       {},
       {{"--process", "1"}, {"--processes", "2"}},
       "2 processes, and no address where they meet; add --master=host:port "
       "with the host of process 0"},
      {"no port",
       {},
       {{"--process", "1"}, {"--processes", "2"}, {"--master", "n1"}},
       "--master=n1: \"n1\" is no address; write host:port, such as n1:29400 "
       "or [fd00::7]:29400, with a port from 1 to 65535"},
      {"not how many",
       {},
       {{"--process", "1"}},
       "--process=1 is set, but not how many processes there are; set "
       "TROUPE_PROCESSES or add --processes=N"},
      {"not which",
       {{"TROUPE_PROCESSES", "2"}},
       {},
       "TROUPE_PROCESSES=2 is set, but not which of them this is; add "
       "--process=I, or let a launcher start it"},
      {"too high",
       {},
       {{"--process", "2"}, {"--processes", "2"}, {"--master", "n1:29400"}},
       "--process=2 must be below --processes=2, since numbers begin with 0"},
      {"no number",
       {},
       {{"--process", "one"}, {"--processes", "2"}},
       "--process=one: must be a whole number from 0 to 1000000"},
      {"none at all",
       {},
       {{"--process", "0"}, {"--processes", "0"}},
       "--processes=0: must be at least 1"},
      {"the same twice",
       {{"TROUPE_MASTER", "n1:1"}, {"TROUPE_PROCESSES", "2"}},
       {{"--process", "1"}, {"--processes", "2"}, {"--master", "n1:1"}},
       "hand: 1/2 local 0/1 node 1/2 at n1:1"},
      {"not the same",
       {{"TROUPE_MASTER", "n2:1"}},
       {{"--process", "1"}, {"--processes", "2"}, {"--master", "n1:1"}},
       "--master=n1:1 contradicts TROUPE_MASTER=n2:1; remove one of the two"},
  });
}

TEST(LaunchersTest, OurOwn) {
  const std::string all = "trainer launch: 3/4 local 1/2 node 1/2 at n1:29400";
  Check({
      {"all is said", kOwn, {}, all},
      {"inside of others",
       With(kOwn, With(kSlurmSets, kTorchrunSets)),
       {},
       all},
      {"an option says the same", kOwn, {{"--process", "3"}}, all},
      {"an option says something else",
       kOwn,
       {{"--process", "2"}},
       "--process=2 contradicts TROUPE_PROCESS=3; remove one of the two"},
      {"one is missing",
       With(kOwn, {{"TROUPE_NODE", ""}}),
       {},
       "TROUPE_NODE is not set; set it, or unset the launcher's other "
       "variables"},
  });
}

TEST(LaunchersTest, SaysItInWords) {
  const auto say = [](const Values& environment) {
    return FindPlacement(Variables(environment), Variables())->ToString();
  };
  EXPECT_EQ(say({}), "one process, not launched by anything known");
  EXPECT_EQ(say(kSlurmSets),
            "launched by Slurm: process 1 of 2 on node 127.0.0.2");
  EXPECT_EQ(say(kOwn),
            "launched by trainer launch: process 3 of 4 on node 1 "
            "of 2");
  EXPECT_EQ(say(kOpenMpiSets), "launched by Open MPI: process 2 of 3");
}

TEST(LaunchersTest, HintsAtWhatMayNotBeMeant) {
  const auto hint = [](const Values& environment) {
    return FindPlacement(Variables(environment), Variables())->hint;
  };
  EXPECT_EQ(hint({}), "");
  EXPECT_EQ(hint(kSlurmSets), "");
  EXPECT_EQ(hint({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "2"}}),
            "this is a Slurm job's script, which is no task: one process "
            "trains; \"srun trainer train ...\" starts all 2");
  EXPECT_EQ(hint({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "1"}}), "");
  EXPECT_EQ(hint(With(kPet, {{"PET_NPROC_PER_NODE", "auto"}})),
            "PET_NPROC_PER_NODE=auto is not read: this is one process on its "
            "node; start more with \"trainer launch --nproc-per-node=K -- "
            "train\"");
}

TEST(LaunchersTest, Certificates) {
  const auto find = [](const Values& environment, const Values& options) {
    return FindPlacement(Variables(environment), Variables(options));
  };
  EXPECT_EQ(find({}, {})->certificates.authority, "");
  EXPECT_EQ(find({{"TROUPE_CERTS", "a/b"}}, {})->certificates.key,
            "a/b/node.key");
  EXPECT_EQ(find({}, {{"--certs", "a"}})->certificates.certificate,
            "a/node.pem");
  EXPECT_EQ(find({{"TROUPE_CERTS", "b"}}, {{"--certs", "a"}}).status(),
            absl::InvalidArgumentError("--certs=a contradicts TROUPE_CERTS=b; "
                                       "remove one of the two"));
  const auto open = find(With(kOwn, {{"TROUPE_CERT_FDS", "5,6,7"}}), {});
  EXPECT_EQ(open->certificates.authority, "/proc/self/fd/5");
  EXPECT_EQ(open->certificates.certificate, "/proc/self/fd/6");
  EXPECT_EQ(open->certificates.key, "/proc/self/fd/7");
  for (const char* wrong : {"5", "5,6,x", "5,6,7,8", "5,,7", "-1,2,3"}) {
    EXPECT_EQ(find(With(kOwn, {{"TROUPE_CERT_FDS", wrong}}), {}).status(),
              absl::InvalidArgumentError(
                  absl::StrCat("TROUPE_CERT_FDS=", wrong,
                               ": must be three numbers of open files")));
  }
}

TEST(LaunchersTest, RanksPerProcess) {
  EXPECT_EQ(FindPlacement(Variables(kOwn), Variables())->ranks_per_process, 0);
  EXPECT_EQ(
      FindPlacement(Variables(With(kOwn, {{"TROUPE_RANKS_PER_PROCESS", "2"}})),
                    Variables())
          ->ranks_per_process,
      2);
}

}  // namespace
}  // namespace troupe::actors

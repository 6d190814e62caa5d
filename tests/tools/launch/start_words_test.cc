#include "tools/trainer/launch/start_words.h"

#include <map>
#include <string>
#include <vector>

#include "actors/launchers/launchers.h"
#include "gtest/gtest.h"

namespace troupe::tools {
namespace {

// Returns "where: before|options" of a process that these variables and options
// place.
std::string Words(const actors::Variables& environment,
                  const actors::Variables& options = {},
                  const std::vector<std::string>& written = {}) {
  const absl::StatusOr<actors::Placement> placement =
      actors::FindPlacement(environment, options);
  if (!placement.ok()) return std::string(placement.status().message());
  const StartWords words =
      WordsOfStart("my trainer", *placement, environment, written);
  return words.where + ": " + words.before + "|" + words.options;
}

actors::Variables Launched(const std::string& nodes) {
  return actors::Variables(
      {{"TROUPE_PROCESS", "0"},
       {"TROUPE_PROCESSES", "2"},
       {"TROUPE_LOCAL_PROCESS", "0"},
       {"TROUPE_LOCAL_PROCESSES", nodes == "1" ? "2" : "1"},
       {"TROUPE_NODE", "0"},
       {"TROUPE_NODES", nodes},
       {"TROUPE_MASTER", "127.0.0.1:9"},
       {kLaunchedByVariable, "trainer launch --nnodes=2 --"}});
}

TEST(StartWordsTest, OneProcess) {
  EXPECT_EQ(Words(actors::Variables()), ": 'my trainer'|");
}

TEST(StartWordsTest, OfTheOwnLauncherWhatItWasCalledBy) {
  EXPECT_EQ(Words(Launched("1")), ": trainer launch --nnodes=2 --|");
  EXPECT_EQ(Words(Launched("2")),
            "on each node, as before: trainer launch --nnodes=2 --|");
}

TEST(StartWordsTest, OfOtherLaunchersAsManyProcesses) {
  const actors::Variables mpi({{"OMPI_COMM_WORLD_RANK", "0"},
                               {"OMPI_COMM_WORLD_SIZE", "2"},
                               {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                               {"PMIX_NAMESPACE", "123"}});
  EXPECT_EQ(Words(mpi,
                  actors::Variables(
                      std::map<std::string, std::string>{{"--certs", "c d"}}),
                  {"--certs=c d"}),
            ": mpirun -n 2 'my trainer'| '--certs=c d'");
  const actors::Variables torchrun({{"TORCHELASTIC_RUN_ID", "1"},
                                    {"RANK", "0"},
                                    {"WORLD_SIZE", "4"},
                                    {"LOCAL_RANK", "0"},
                                    {"LOCAL_WORLD_SIZE", "4"},
                                    {"GROUP_RANK", "0"},
                                    {"GROUP_WORLD_SIZE", "1"},
                                    {"MASTER_ADDR", "n1"},
                                    {"MASTER_PORT", "29500"}});
  EXPECT_EQ(Words(torchrun),
            ": torchrun --nproc-per-node=4 --no-python 'my trainer'|");
}

TEST(StartWordsTest, ByHandInEachProcess) {
  const actors::Variables options(
      {{"--process", "0"}, {"--processes", "2"}, {"--master", "n1:29400"}});
  EXPECT_EQ(
      Words(actors::Variables(), options, {"--process=0", "--processes=2"}),
      "in each of the 2 processes, with its own number: "
      "'my trainer'| --process=0 --processes=2");
}

}  // namespace
}  // namespace troupe::tools

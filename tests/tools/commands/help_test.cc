#include "tools/trainer/commands/help.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tools/trainer/commands/certs_command.h"
#include "tools/trainer/config/config_keys.h"
#include "tools/trainer/doctor/doctor_command.h"
#include "tools/trainer/launch/launch_command.h"

namespace troupe::tools {
namespace {

TEST(Help, NamesEveryKeyInLinesThatFitATerminal) {
  const std::string help = TrainHelp();
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_TRUE(absl::StrContains(help, std::string(key.key()) + " = "))
        << key.name;
  }
  for (absl::string_view line : absl::StrSplit(
           help + GeneralHelp() + LaunchHelp() + CertsHelp() + DoctorHelp(),
           '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(PrintConfig, ReadsBackAsTheSameConfiguration) {
  const auto loaded = ParseConfig(
      "[train]\nsteps = 10\n[data]\npath = \"a \\\"b\\\"\"\n", "run.toml",
      {{"model.widths", "3,4", "--set model.widths"},
       {"optimizer.lr", "0.1", "--set optimizer.lr"}});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const std::string printed = PrintConfig(*loaded);
  const auto again = ParseConfig(printed, "again.toml", {});
  ASSERT_TRUE(again.ok()) << again.status();
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_EQ(FormatValue(key, again->config), FormatValue(key, loaded->config))
        << key.name;
  }
  EXPECT_TRUE(absl::StrContains(
      printed, "lr = 0.1                               # --set optimizer.lr\n"))
      << printed;
  EXPECT_TRUE(absl::StrContains(
      printed, "steps = 10                             # run.toml:2\n"))
      << printed;
  EXPECT_TRUE(absl::StrContains(printed, "\nmomentum = 0\n")) << printed;
}

}  // namespace
}  // namespace troupe::tools

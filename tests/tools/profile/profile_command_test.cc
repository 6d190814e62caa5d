#include "tools/profile/profile_command.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace troupe::tools {
namespace {

TEST(FormatProfile, PartsOfAStepAddUpToIt) {
  StepProfile profile;
  profile.steps_per_second = 100;
  profile.batch = 64;
  profile.ranks = 2;
  profile.seconds = 2;  // 200 steps on each of two ranks: 4 s in all
  profile.times = {{"LinearForward", 2.0, 1200},
                   {"ReluForward", 1.0, 400},
                   {"Fill", 0.008, 400},
                   {"Copy", 0.004, 4}};
  EXPECT_EQ(
      FormatProfile(profile),
      "a step takes 10 ms: 6,400 samples/s on 2 ranks, timed op by op\n"
      "\n"
      "op                           calls a step  ms a step  of the step\n"
      "LinearForward                           3      5.000        50.0%\n"
      "ReluForward                             1      2.500        25.0%\n"
      "2 more                                         0.030         0.3%\n"
      "outside ops                                    2.470        24.7%\n");
}

TEST(ParseProfile, ReadsItsOptions) {
  const absl::StatusOr<ProfileRequest> request =
      ParseProfile({"--config=a.toml", "--set", "model.kind=mlp", "--ranks=2",
                    "--seconds=0.5"});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->config, "a.toml");
  EXPECT_EQ(request->sets, std::vector<std::string>{"model.kind=mlp"});
  EXPECT_EQ(request->ranks, "2");
  EXPECT_EQ(request->seconds, 0.5);
  EXPECT_TRUE(absl::StrContains(
      ParseProfile({"--seconds=0"}).status().message(), "--seconds"));
  EXPECT_TRUE(ParseProfile({"--help"})->help);
}

}  // namespace
}  // namespace troupe::tools

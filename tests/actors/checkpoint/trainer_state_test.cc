#include "actors/checkpoint/trainer_state.h"

#include <limits>
#include <string>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

TrainerState Extreme() {
  TrainerState state;
  state.step = std::int64_t{1} << 53;  // the largest count
  state.seed = std::numeric_limits<std::uint64_t>::max();
  state.sampler = {(std::int64_t{1} << 53) - 1, 123, 60000,
                   std::numeric_limits<std::uint64_t>::max() - 1};
  state.plan = "dp=2 pp=1\n\"quoted\"\n";
  state.versions = {{"compiler", "g++ 12"}, {"troupe", "0.1"}};
  return state;
}

TEST(TrainerState, TextIsReadableAndExact) {
  EXPECT_EQ(FormatTrainerState(Extreme()), R"({
  "format": 1,
  "step": 9007199254740992,
  "seed": 18446744073709551615,
  "sampler": {
    "epoch": 9007199254740991,
    "samples_consumed": 123,
    "dataset_size": 60000,
    "seed": 18446744073709551614
  },
  "update_counts": true,
  "plan": "dp=2 pp=1\n\"quoted\"\n",
  "versions": {
    "compiler": "g++ 12",
    "troupe": "0.1"
  }
}
)");
}

TEST(TrainerState, ParsesWhatItFormats) {
  const auto parsed = ParseTrainerState(FormatTrainerState(Extreme()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->step, Extreme().step);
  EXPECT_EQ(parsed->seed, Extreme().seed);
  EXPECT_EQ(parsed->sampler, Extreme().sampler);
  EXPECT_EQ(parsed->plan, Extreme().plan);
  EXPECT_EQ(parsed->versions, Extreme().versions);
}

// The field says how to read the optimizer's states; earlier versions did not
// write it.
TEST(TrainerState, KnowsWhetherUpdatesAreCounted) {
  const std::string text = FormatTrainerState(Extreme());
  EXPECT_TRUE(ParseTrainerState(text)->has_update_counts);
  const std::string earlier =
      absl::StrReplaceAll(text, {{"  \"update_counts\": true,\n", ""}});
  ASSERT_NE(earlier, text);
  EXPECT_FALSE(ParseTrainerState(earlier)->has_update_counts);
}

TEST(TrainerState, KeepsSettings) {
  TrainerState state = Extreme();
  state.settings = {{"module 0", "nn::Linear"}, {"optimizer.lr", "0.1"}};
  const auto parsed = ParseTrainerState(FormatTrainerState(state));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->settings, state.settings);
  EXPECT_EQ(ParseTrainerState(FormatTrainerState(Extreme()))->settings.size(),
            0u);
}

TEST(TrainerState, KeepsWhatTheEvaluationsSaid) {
  EXPECT_FALSE(ParseTrainerState(FormatTrainerState(Extreme()))->evaluations);
  TrainerState state = Extreme();
  state.evaluations = {"eval_loss", 0.1, 400, 1.0 / 3, 300, 7, true};
  const auto parsed = ParseTrainerState(FormatTrainerState(state));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_TRUE(parsed->evaluations);
  EXPECT_EQ(parsed->evaluations->metric, "eval_loss");
  EXPECT_EQ(parsed->evaluations->best, 0.1);
  EXPECT_EQ(parsed->evaluations->best_step, 400);
  EXPECT_EQ(parsed->evaluations->reference, 1.0 / 3) << "to the bit";
  EXPECT_EQ(parsed->evaluations->reference_step, 300);
  EXPECT_EQ(parsed->evaluations->waited, 7);
  EXPECT_TRUE(parsed->evaluations->due);
}

TEST(TrainerState, KeepsWhatTheDataAre) {
  TrainerState state = Extreme();
  state.sampler.data = {{"kind", "glyphs"}, {"seed", "0"}};
  const std::string text = FormatTrainerState(state);
  EXPECT_NE(text.find(R"(
    "seed": 18446744073709551614,
    "data": {
      "kind": "glyphs",
      "seed": "0"
    }
  },
)"),
            std::string::npos)
      << text;
  const auto parsed = ParseTrainerState(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->sampler, state.sampler);
}

TEST(TrainerState, ErrorsNameTheField) {
  auto error = [](std::string text, const std::string& from,
                  const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return std::string(ParseTrainerState(text).status().message());
  };
  const std::string good = FormatTrainerState(Extreme());
  EXPECT_EQ(error(good, "\"step\": 9", "\"step\": -9"),
            "field \"step\" is missing or not an integer in range");
  EXPECT_EQ(error(good, "\"seed\": 1", "\"seed\": 1."),
            "field \"seed\" is missing or not an integer in range");
  EXPECT_EQ(error(good, "\"epoch\": 9007199254740991",
                  "\"epoch\": 18446744073709551615"),
            "field \"epoch\" is missing or not an integer in range");
  // Twice that number of steps would not fit the 64 bits of a message.
  EXPECT_EQ(error(good, "\"step\": 9007199254740992",
                  "\"step\": 4611686018427387904"),
            "field \"step\" is missing or not an integer in range");
  EXPECT_EQ(error(good, "\"plan\"", "\"plane\""),
            "field \"plan\" is missing or not a text");
  EXPECT_EQ(error(good, "\"0.1\"", "1"),
            "field \"versions\" is missing or not an object of texts");
  EXPECT_EQ(error(good, "\"sampler\"", "\"simpler\""),
            "field \"sampler\" is missing or not an object");
  TrainerState described = Extreme();
  described.sampler.data = {{"kind", "glyphs"}};
  EXPECT_EQ(error(FormatTrainerState(described), "\"glyphs\"", "3"),
            "field \"data\" is missing or not an object of texts");
  EXPECT_EQ(
      error(good, "\"format\": 1", "\"format\": 2"),
      "it has format 2 of a later version where this program reads up to 1");
  EXPECT_EQ(ParseTrainerState("{\"step\": ").status().message(),
            "it is not valid JSON");
  EXPECT_EQ(ParseTrainerState("[]").status().message(),
            "it is not a JSON object");
}

}  // namespace
}  // namespace troupe::actors

#include "pipeline/table/action_rules.h"

#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "pipeline/table/table_index.h"

namespace troupe::pipeline {
namespace {

std::string TextOf(ActionRole role) {
  switch (role) {
    case ActionRole::kCompute:
      return "compute";
    case ActionRole::kReceive:
      return "receive";
    case ActionRole::kSend:
      return "send";
    case ActionRole::kCollective:
      return "collective";
    case ActionRole::kUpdate:
      return "update";
  }
  return "";
}

// Returns a table with every kind once or twice, except kinds that exclude
// others.
StepTable TableWithAll() {
  return ParseTable(
             "RA0 GV0 GV1 F0 RL0 GV0.1 SA0 RG0 B0 SG0 RA1 F1 SA1 RG1 I1 SG1 "
             "RL1 "
             "RL0.1 W1 LR TR1 AR0 UP0 AR1 PN1 UP1 RU2 AG1 NR",
             {/*update_needs_all_buckets=*/true, /*reduce_findings=*/true})
      .value();
}

// Returns the action's needs: "F0" for the end of an action, "ready 1" for a
// signal of a bucket.
std::string NeedsOf(const StepTable& table, const Action& action) {
  return absl::StrJoin(
      action.needs, ", ", [&](std::string* out, const Signal& need) {
        switch (need.kind) {
          case SignalKind::kDone:
            absl::StrAppend(out, table.actions[need.id].ToString());
            break;
          case SignalKind::kBucketReady:
            absl::StrAppend(out, "ready ", need.id);
            break;
          case SignalKind::kBucketReleased:
            absl::StrAppend(out, "released ", need.id);
            break;
          case SignalKind::kBucketReduced:
            absl::StrAppend(out, "reduced ", need.id);
            break;
          case SignalKind::kAllReduced:
            absl::StrAppend(out, "all reduced");
            break;
          case SignalKind::kLossReduced:
            absl::StrAppend(out, "loss");
            break;
          case SignalKind::kStepAsked:
            absl::StrAppend(out, "asked");
            break;
        }
      });
}

TEST(ActionRulesTest, SayHowEachKindRunsAndWhatItWaitsFor) {
  const StepTable table = TableWithAll();
  std::string text;
  for (const Action& action : table.actions) {
    absl::StrAppend(&text, action.ToString(), " ",
                    TextOf(RuleOf(action.kind).role), ": ",
                    NeedsOf(table, action), "\n");
  }
  EXPECT_EQ(text,
            "RA0 receive: \n"
            "GV0 collective: \n"
            "GV1 collective: \n"
            "F0 compute: RA0\n"
            "RL0 update: GV0, F0\n"
            "GV0.1 collective: RL0\n"
            "SA0 send: F0\n"
            "RG0 receive: \n"
            "B0 compute: F0, RG0\n"
            "SG0 send: B0\n"
            "RA1 receive: \n"
            "F1 compute: RA1, F0\n"
            "SA1 send: F1\n"
            "RG1 receive: \n"
            "I1 compute: F1, RG1, B0\n"
            "SG1 send: I1\n"
            "RL1 update: GV1, I1\n"
            "RL0.1 update: GV0.1, I1\n"
            "W1 compute: I1, B0\n"
            "LR collective: F0, F1\n"
            "TR1 collective: ready 1\n"
            "AR0 collective: ready 0\n"
            "UP0 update: reduced 0, released 0, loss, all reduced, NR\n"
            "AR1 collective: TR1\n"
            "PN1 collective: reduced 1, released 1, loss, all reduced, NR\n"
            "UP1 update: reduced 1, released 1, loss, all reduced, NR, PN1\n"
            "RU2 collective: ready 2, released 2, loss\n"
            "AG1 collective: UP1\n"
            "NR collective: loss, all reduced\n");
}

TEST(ActionRulesTest, EveryKindIsInTheTableOfTheTestAbove) {
  std::set<ActionKind> kinds;
  for (const Action& action : TableWithAll().actions) kinds.insert(action.kind);
  EXPECT_EQ(kinds.size(), ActionRules().size());
}

TEST(ActionRulesTest, WordsAreUniqueCapitals) {
  std::set<std::string> words;
  for (const ActionRule& rule : ActionRules()) {
    EXPECT_TRUE(words.insert(std::string(rule.word)).second) << rule.word;
    for (const char letter : rule.word) {
      EXPECT_TRUE(letter >= 'A' && letter <= 'Z') << rule.word;
    }
  }
}

TEST(ActionRulesTest, OnlyCollectivesHaveAGroupAndAPart) {
  for (const ActionRule& rule : ActionRules()) {
    const bool collective = rule.role == ActionRole::kCollective;
    EXPECT_EQ(rule.group != nullptr, collective) << rule.word;
    EXPECT_EQ(!rule.part.empty(), collective) << rule.word;
    EXPECT_TRUE(collective || !rule.gives.has_value()) << rule.word;
  }
}

TEST(ActionRulesTest, ACollectiveGivesTheSignalOfItsBucketAndChunk) {
  EXPECT_EQ(SignalOf({ActionKind::kReduceBucket, 3, {}, /*chunk=*/1}),
            (Signal{SignalKind::kBucketReduced, 3, 1}));
  EXPECT_EQ(SignalOf({ActionKind::kReduceLoss, 0, {}, 0}),
            (Signal{SignalKind::kLossReduced, 0, 0}));
  EXPECT_EQ(SignalOf({ActionKind::kReduceFindings, 0, {}, 0}), std::nullopt);
}

TEST(ActionRulesTest, ABucketIsReducedAtTheEndOfItsLastRound) {
  const StepTable table =
      ParseTable("F0 LR B0 AR0 AR0.1 UP0 AR1 AR1.1 UP1").value();
  const TableIndex index(table);
  std::string given;
  for (const Action& action : table.actions) {
    const auto signal = SignalAtEnd(action, index);
    absl::StrAppend(&given, action.ToString(), signal ? "! " : " ");
  }
  EXPECT_EQ(given, "F0 LR! B0 AR0 AR0.1! UP0 AR1 AR1.1! UP1 ");
}

TEST(ActionRulesTest, AnEvaluationHasForwardsAndWhatTheyNeed) {
  std::string words;
  for (const ActionRule& rule : ActionRules()) {
    EXPECT_TRUE(MayBeIn(rule.kind, /*trains=*/true)) << rule.word;
    if (MayBeIn(rule.kind, /*trains=*/false)) {
      absl::StrAppend(&words, rule.word, " ");
    }
  }
  EXPECT_EQ(words, "F RA SA RG SG GV RL ");
}

TEST(ActionRulesTest, ABucketHasItsNewParametersAfterItsMaker) {
  const StepTable table =
      ParseTable("0F0 1F0 1B0 0B0 LR 1AR0 1UP0 0AR0 0UP0 0RU1 1AR2 1UP2 1AG2")
          .value();
  const TableIndex index(table);
  const auto maker = [&](int bucket, int chunk) {
    const int id = MakerOf(index, bucket, chunk);
    return id < 0 ? "none" : table.actions[id].ToString(/*chunks=*/2);
  };
  EXPECT_EQ(maker(0, /*chunk=*/0), "0UP0");
  EXPECT_EQ(maker(0, /*chunk=*/1), "1UP0");
  EXPECT_EQ(maker(1, /*chunk=*/0), "0RU1");
  EXPECT_EQ(maker(1, /*chunk=*/1), "none");
  EXPECT_EQ(maker(2, /*chunk=*/1), "1AG2");
}

TEST(ActionRulesTest, GradientsGoFromTheirSumsToTheUpdate) {
  std::string words;
  for (const ActionRule& rule : ActionRules()) {
    if (IsOfGradients(rule.kind)) absl::StrAppend(&words, rule.word, " ");
  }
  EXPECT_EQ(words, "TR AR UP RU PN ");
}

TEST(ActionRulesTest, PartsAreWhatErrorsSay) {
  EXPECT_EQ(PartOf({ActionKind::kReduceLoss, 0, {}, 0}, /*chunks=*/2), "loss");
  EXPECT_EQ(PartOf({ActionKind::kReduceFindings, 0, {}, 0}, 1),
            "norms of gradients");
  EXPECT_EQ(PartOf({ActionKind::kReduceTied, 4, {}, 0}, 1), "tied bucket 4");
  EXPECT_EQ(PartOf({ActionKind::kReduceBucket, 4, {}, 1}, 2),
            "bucket 4 of chunk 1");
  EXPECT_EQ(PartOf({ActionKind::kReduceBucket, 4, {}, 1, /*round=*/2}, 2),
            "bucket 4 of chunk 1, round 2");
}

}  // namespace
}  // namespace troupe::pipeline

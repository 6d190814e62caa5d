#include "comm/collective_kinds.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe::comm {
namespace {

std::string TextOf(Participants ranks, Extent extent) {
  std::string text;
  switch (ranks) {
    case Participants::kNone:
      return "nothing";
    case Participants::kAll:
      text = "all: ";
      break;
    case Participants::kRoot:
      text = "root: ";
      break;
  }
  switch (extent) {
    case Extent::kNothing:
      return text + "nothing";
    case Extent::kBlock:
      return text + "c";
    case Extent::kBlockPerRank:
      return text + "n c";
  }
  return text;
}

TEST(CollectiveKindsTest, SayWhatEachKindMoves) {
  std::string text;
  for (const CollectiveRule& rule : CollectiveRules()) {
    absl::StrAppend(&text, rule.name, "  ", TextOf(rule.gives, rule.input),
                    " -> ", TextOf(rule.gets, rule.range),
                    rule.reduces ? ", reduced" : "",
                    rule.input_may_be_range ? ", in place" : "",
                    rule.updates ? ", updates" : "", "\n");
  }
  EXPECT_EQ(text,
            "all_reduce  all: c -> all: c, reduced, in place\n"
            "broadcast  root: c -> all: c, in place\n"
            "barrier  nothing -> nothing\n"
            "reduce_update  all: c -> all: c, reduced, in place, updates\n"
            "reduce  all: c -> root: c, reduced, in place\n"
            "all_gather  all: c -> all: n c\n"
            "gather  all: c -> root: n c\n"
            "scatter  root: n c -> all: c\n"
            "reduce_scatter  all: n c -> all: c, reduced\n"
            "all_to_all  all: n c -> all: n c\n");
}

TEST(CollectiveKindsTest, RootAndCountedSideFollowFromTheRow) {
  std::string text;
  for (const CollectiveRule& rule : CollectiveRules()) {
    if (!rule.moves_data()) continue;
    absl::StrAppend(&text, rule.name, rule.has_root() ? " of a root" : "",
                    " counts the ", rule.counts_range() ? "range" : "input",
                    rule.counts_block_per_rank() ? ", n c" : ", c", "\n");
  }
  EXPECT_EQ(text,
            "all_reduce counts the range, c\n"
            "broadcast of a root counts the range, c\n"
            "reduce_update counts the range, c\n"
            "reduce of a root counts the input, c\n"
            "all_gather counts the input, c\n"
            "gather of a root counts the input, c\n"
            "scatter of a root counts the range, c\n"
            "reduce_scatter counts the range, c\n"
            "all_to_all counts the input, n c\n");
}

// EvenFlow relies on these.
TEST(CollectiveKindsTest, RowsAreOfAFlowOfBlocks) {
  for (const CollectiveRule& rule : CollectiveRules()) {
    SCOPED_TRACE(rule.name);
    EXPECT_EQ(rule.gives == Participants::kNone,
              rule.input == Extent::kNothing);
    EXPECT_EQ(rule.gets == Participants::kNone, rule.range == Extent::kNothing);
    EXPECT_EQ(rule.gives == Participants::kNone,
              rule.gets == Participants::kNone);
    const bool blocks_have_ranks = rule.range == Extent::kBlockPerRank;
    if (rule.gives == Participants::kAll) {
      EXPECT_NE(rule.reduces, blocks_have_ranks) << "from several ranks";
    } else {
      EXPECT_FALSE(rule.reduces || blocks_have_ranks) << "from one rank";
    }
    if (rule.input == Extent::kBlockPerRank) {
      EXPECT_EQ(rule.gets, Participants::kAll);
    }
    if (rule.input_may_be_range) {
      EXPECT_EQ(rule.input, rule.range);
    }
  }
}

TEST(CollectiveKindsTest, NamesAreUnique) {
  std::set<std::string> names;
  for (const CollectiveRule& rule : CollectiveRules()) {
    EXPECT_TRUE(names.insert(std::string(rule.name)).second) << rule.name;
    EXPECT_EQ(CollectiveKindName(rule.kind), rule.name);
  }
}

}  // namespace
}  // namespace troupe::comm

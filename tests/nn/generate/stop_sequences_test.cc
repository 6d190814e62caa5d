#include "nn/generate/stop_sequences.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe::nn {
namespace {

TEST(StopSequencesTest, TheTextEndsBeforeTheFirst) {
  StopSequences stop({"\n\n", "", "User:"});
  EXPECT_EQ(stop.Add("Yes.\n"), "Yes.");
  EXPECT_EQ(stop.Add("No. U"), "\nNo. ");
  EXPECT_EQ(stop.Add("se"), "");
  EXPECT_EQ(stop.Add("s"), "Uses");
  EXPECT_EQ(stop.Add("s\nUser: \n\n"), "s\n");
  EXPECT_TRUE(stop.found());
  EXPECT_EQ(stop.Add("more"), "");
  EXPECT_EQ(stop.Rest(), "");
}

TEST(StopSequencesTest, WhatIsHeldBackComesAtTheEnd) {
  StopSequences stop({"aab"});
  EXPECT_EQ(stop.Add("xaa"), "x");
  EXPECT_EQ(stop.Add("a"), "a");  // "aa" may still go on with a "b"
  EXPECT_FALSE(stop.found());
  EXPECT_EQ(stop.Rest(), "aa");
  StopSequences none({});
  EXPECT_EQ(none.Add("aab"), "aab");
}

// Cut into pieces in every way, a text has the same begin.
TEST(StopSequencesTest, PiecesDoNotMatter) {
  const std::string text = "abaababaab";
  for (unsigned cuts = 0; cuts < 1u << (text.size() - 1); ++cuts) {
    StopSequences stop({"abab", "bb"});
    std::string said, piece;
    for (std::size_t i = 0; i < text.size(); ++i) {
      piece += text[i];
      if (i + 1 < text.size() && (cuts >> i & 1) == 0) continue;
      said += stop.Add(piece);
      piece.clear();
    }
    EXPECT_EQ(said + stop.Rest(), "aba");
    EXPECT_TRUE(stop.found());
  }
}

}  // namespace
}  // namespace troupe::nn

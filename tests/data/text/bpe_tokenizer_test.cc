// golden/make_bpe.py made the vocabulary and the encodings, with the pattern as
// a regular expression and GPT-2's own way to merge.

#include "data/text/bpe_tokenizer.h"

#include "data/text/gpt2_split.h"
#include "data/text/vocabulary_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "nn/random/philox.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kGolden[] = "tests/data/text/golden";

std::string GoldenFile(const std::string& name) {
  base::PosixFileSystem files;
  return *base::ReadWholeFile(files, base::JoinPath(kGolden, name), 1 << 20);
}

TokenizerPtr Golden() {
  base::PosixFileSystem files;
  auto tokenizer = ReadBpeTokenizer(files, kGolden);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *tokenizer;
}

std::vector<std::string> Pieces(absl::string_view text) {
  std::vector<std::string> pieces;
  for (const absl::string_view piece : SplitForGpt2(text)) {
    pieces.emplace_back(piece);
  }
  return pieces;
}

TEST(Gpt2SplitTest, WordsTakeTheSpaceBeforeThem) {
  EXPECT_THAT(Pieces("Hello world, 42 times"),
              ElementsAre("Hello", " world", ",", " 42", " times"));
}

TEST(Gpt2SplitTest, Contractions) {
  EXPECT_THAT(Pieces("It's I'll we've 'tis"),
              ElementsAre("It", "'s", " I", "'ll", " we", "'ve", " '", "tis"));
  EXPECT_THAT(Pieces("IT'S"), ElementsAre("IT", "'", "S"));
  EXPECT_THAT(Pieces("''s"), ElementsAre("''", "s"));
  EXPECT_THAT(Pieces("'sa"), ElementsAre("'s", "a"));
}

TEST(Gpt2SplitTest, WhiteSpaceLeavesItsLastToWhatFollows) {
  EXPECT_THAT(Pieces("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(Pieces("a \n b"), ElementsAre("a", " \n", " b"));
  EXPECT_THAT(Pieces("a\nb"), ElementsAre("a", "\n", "b"));
  EXPECT_THAT(Pieces("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(Pieces("a   "), ElementsAre("a", "   "));
  EXPECT_THAT(Pieces(" "), ElementsAre(" "));
  EXPECT_THAT(Pieces(""), ElementsAre());
}

TEST(Gpt2SplitTest, UnicodeClasses) {
  // Letters, a mark (which is neither letter nor number), a half, a wide space.
  EXPECT_THAT(Pieces("\xc3\xa9t\xc3\xa9 e\xcc\x81 \xc2\xbd\xe3\x80\x80x"),
              ElementsAre("\xc3\xa9t\xc3\xa9", " e", "\xcc\x81", " \xc2\xbd",
                          "\xe3\x80\x80", "x"));
  // No UTF-8: signs.
  EXPECT_THAT(Pieces("a\xff\xc3 b"), ElementsAre("a", "\xff\xc3", " b"));
}

TEST(BpeTokenizerTest, EqualsTheGoldenEncodings) {
  const TokenizerPtr tokenizer = Golden();
  const auto cases = nlohmann::json::parse(GoldenFile("encodings.json"));
  ASSERT_GT(cases.size(), 10u);
  for (const auto& entry : cases) {
    const auto text = entry[0].get<std::string>();
    const auto tokens = tokenizer->Encode(text);
    ASSERT_TRUE(tokens.ok());
    EXPECT_EQ(*tokens, entry[1].get<std::vector<Token>>()) << text;
    EXPECT_EQ(*tokenizer->Decode(*tokens), text);
  }
}

TEST(BpeTokenizerTest, MergesWhereThatIsPossible) {
  const TokenizerPtr tokenizer = Golden();
  EXPECT_EQ(tokenizer->name(), "gpt2");
  // "the" with and without its space is a token of its own.
  EXPECT_EQ(tokenizer->Encode(" the")->size(), 1u);
  EXPECT_LT(tokenizer->Encode(" acknowledged")->size(), 6u);
}

TEST(BpeTokenizerTest, AnyBytesComeBack) {
  const TokenizerPtr tokenizer = Golden();
  for (std::uint32_t round = 0; round < 2000; ++round) {
    nn::RandomStream draws(nn::RandomKey(1, nn::Purpose::kTest), {round, 0, 0});
    std::string text;
    const std::uint64_t size = draws.Below(60);
    for (std::uint64_t i = 0; i < size; ++i) {
      // Mostly what the vocabulary has, and some of everything.
      text.push_back(draws.Below(3) == 0 ? static_cast<char>(draws.Below(256))
                                         : "the in'sll  \n19"[draws.Below(15)]);
    }
    const auto tokens = tokenizer->Encode(text);
    ASSERT_TRUE(tokens.ok());
    EXPECT_EQ(*tokenizer->Decode(*tokens), text);
  }
}

// One piece of a megabyte must not take minutes.
TEST(BpeTokenizerTest, LongPieces) {
  const std::string text(1 << 20, 'e');
  const auto tokens = Golden()->Encode(text);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(*Golden()->Decode(*tokens), text);
}

TEST(BpeTokenizerTest, SpecialTokensAreDecodedOnly) {
  const TokenizerPtr tokenizer = Golden();
  const Token end = static_cast<Token>(tokenizer->vocab_size() - 1);
  EXPECT_EQ(*tokenizer->Decode({end}), "<|endoftext|>");
  EXPECT_GT(tokenizer->Encode("<|endoftext|>")->size(), 1u);
  EXPECT_FALSE(tokenizer->Decode({end + 1}).ok());
}

std::string BpeError(const std::string& vocabulary, const std::string& merges) {
  const auto tokenizer = ParseBpeTokenizer(vocabulary, merges);
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kDataLoss);
  return std::string(tokenizer.status().message());
}

TEST(BpeTokenizerTest, SaysWhatIsWrong) {
  const std::string vocabulary = GoldenFile("vocab.json");
  EXPECT_THAT(BpeError("{\"a\": 0}", ""),
              HasSubstr("vocab.json: no token stands for the byte 0"));
  EXPECT_THAT(BpeError("[]", ""),
              HasSubstr("vocab.json: it is not a JSON object"));
  EXPECT_THAT(BpeError(vocabulary, "#version: 0.2\nt h e\n"),
              HasSubstr("merges.txt:2: the line is not two tokens"));
  EXPECT_THAT(BpeError(vocabulary, "q q\n"),
              HasSubstr("merges.txt:1: a part of the line, or both together"));
  base::PosixFileSystem files;
  const std::string folder = MakeTempFolder();
  EXPECT_EQ(ReadBpeTokenizer(files, folder).status().code(),
            absl::StatusCode::kNotFound);
  WriteFile(folder, "vocab.json", {'{', '}'});
  WriteFile(folder, "merges.txt", {});
  EXPECT_THAT(std::string(ReadBpeTokenizer(files, folder).status().message()),
              HasSubstr(folder + "/vocab.json: it has no tokens"));
}

TEST(BpeTokenizerTest, NamesPointersAndArchives) {
  const std::string vocabulary = GoldenFile("vocab.json");
  EXPECT_EQ(
      ParseBpeTokenizer(kLfsPointer, GoldenFile("merges.txt"))
          .status()
          .message(),
      "vocab.json: a pointer of git-lfs, not a vocabulary; fetch the file "
      "itself (git lfs pull)");
  EXPECT_EQ(ParseBpeTokenizer(vocabulary, kLfsPointer).status().message(),
            "merges.txt: a pointer of git-lfs, not the merges of a tokenizer; "
            "fetch the file itself (git lfs pull)");
  EXPECT_EQ(ParseBpeTokenizer("PK\3\4", "").status().message(),
            "vocab.json: a zip archive, not a vocabulary; unpack it");
}

// Damaged files are errors, or tokenizers that give bytes back.
TEST(BpeTokenizerTest, DamagedFiles) {
  const std::string vocabulary = GoldenFile("vocab.json");
  const std::string merges = GoldenFile("merges.txt");
  int parsed = 0;
  constexpr std::uint32_t kRounds = 600;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    nn::RandomStream draws(nn::RandomKey(2, nn::Purpose::kTest), {round, 0, 0});
    std::string damaged[] = {vocabulary, merges};
    std::string& file = damaged[draws.Below(2)];
    const std::size_t at = draws.Below(file.size());
    if (draws.Below(3) == 0) {
      file.erase(at, 1 + draws.Below(20));
    } else {
      file[at] = static_cast<char>(draws.Below(256));
    }
    const auto tokenizer = ParseBpeTokenizer(damaged[0], damaged[1]);
    if (!tokenizer.ok()) {
      EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kDataLoss);
      EXPECT_LT(tokenizer.status().message().size(), 500u);
      continue;
    }
    ++parsed;
    const std::string text = "considered, in the end";
    EXPECT_EQ((*tokenizer)->Decode(*(*tokenizer)->Encode(text)).ok(), true);
  }
  EXPECT_GT(parsed, 0);
  EXPECT_LT(parsed, static_cast<int>(kRounds));
}

}  // namespace
}  // namespace troupe::data

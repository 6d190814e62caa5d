#include "data/text/byte_tokenizer.h"
#include "data/text/char_tokenizer.h"
#include "data/text/vocabulary_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

TEST(ByteTokenizerTest, EncodesAnything) {
  const TokenizerPtr bytes = MakeByteTokenizer();
  EXPECT_EQ(bytes->name(), "bytes");
  EXPECT_EQ(bytes->vocab_size(), 256);
  const std::string text("a\0\xff", 3);
  const auto tokens = bytes->Encode(text);
  ASSERT_TRUE(tokens.ok());
  EXPECT_THAT(*tokens, ElementsAre(97, 0, 255));
  EXPECT_EQ(*bytes->Decode(*tokens), text);
}

TEST(ByteTokenizerTest, RefusesOtherNumbers) {
  EXPECT_EQ(Message(MakeByteTokenizer()->Decode({256}).status()),
            "token 256 is not one of the 256 tokens of the tokenizer "
            "\"bytes\"; use that of the training");
  EXPECT_EQ(MakeByteTokenizer()->Decode({-1}).status().code(),
            absl::StatusCode::kOutOfRange);
}

TEST(CharTokenizerTest, NumbersCharactersInTheirOrder) {
  const auto chars = MakeCharTokenizer("hello \xc3\xa9\xe2\x82\xac");
  ASSERT_TRUE(chars.ok()) << chars.status();
  EXPECT_EQ((*chars)->vocab_size(), 7);
  const std::string text = "\xe2\x82\xac hole\xc3\xa9";
  const auto tokens = (*chars)->Encode(text);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(*tokens, ElementsAre(6, 0, 2, 4, 3, 1, 5));
  EXPECT_EQ(*(*chars)->Decode(*tokens), text);
}

TEST(CharTokenizerTest, NamesTheByteThatItCannotEncode) {
  const auto chars = MakeCharTokenizer("abc");
  EXPECT_EQ(Message((*chars)->Encode("cad").status()),
            "the character \"d\" at byte 2 is not one of the 3 characters of "
            "the tokenizer's corpus; remove it, or use the tokenizer "
            "\"bytes\"");
  EXPECT_THAT(Message((*chars)->Encode("a\xff").status()),
              HasSubstr("not UTF-8 at byte 1"));
  EXPECT_THAT(Message(MakeCharTokenizer("ab\xc3").status()),
              HasSubstr("not UTF-8 at byte 2; convert it, or use the tokenizer "
                        "\"bytes\""));
  EXPECT_FALSE(MakeCharTokenizer("").ok());
}

TEST(CharTokenizerTest, ComesBackFromItsFile) {
  base::PosixFileSystem files;
  const std::string path = base::JoinPath(MakeTempFolder(), "chars.json");
  const auto chars = MakeCharTokenizer("z\n\"\\\xc3\xa9");
  ASSERT_TRUE(SaveCharTokenizer(files, path, **chars).ok());
  const auto read = ReadCharTokenizer(files, path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*(*read)->Encode("\xc3\xa9z\n"), *(*chars)->Encode("\xc3\xa9z\n"));
  EXPECT_FALSE(SaveCharTokenizer(files, path, *MakeByteTokenizer()).ok());
  EXPECT_EQ(ReadCharTokenizer(files, path + "x").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(CharTokenizerTest, RefusesVocabulariesOfOtherThings) {
  EXPECT_THAT(Message(ParseCharTokenizer("{\"ab\": 0}", "v.json").status()),
              HasSubstr("v.json: token 0 is not one character"));
  EXPECT_FALSE(ParseCharTokenizer("{\"\": 0}", "v.json").ok());
}

TEST(VocabularyFileTest, WritesWhatItReads) {
  const std::vector<std::string> tokens = {"\n", "a", "\xc4\xa0the", "\""};
  const auto read = ParseVocabulary(VocabularyToJson(tokens), "v.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, tokens);
  EXPECT_EQ(VocabularyToJson({"\n", "a"}), "{\"\\n\":0,\"a\":1}\n");
  EXPECT_THAT(*ParseVocabulary("{\"b\": 1, \"a\": 0}", "v.json"),
              ElementsAre("a", "b"));
}

TEST(VocabularyFileTest, SaysWhatIsWrong) {
  const auto error = [](const std::string& json) {
    const auto read = ParseVocabulary(json, "v.json");
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << json;
    return Message(read.status());
  };
  const std::string hint =
      "; give one JSON object from texts to the numbers 0..n-1";
  EXPECT_EQ(error("[1]"), "v.json: it is not a JSON object" + hint);
  EXPECT_EQ(error(""), "v.json: not JSON at byte 1" + hint);
  EXPECT_EQ(error("{\"a\": 0} x"), "v.json: not JSON at byte 10" + hint);
  EXPECT_EQ(error("{\"a\": 0.5}"),
            "v.json: the value of \"a\" is not a token's number" + hint);
  EXPECT_EQ(error("{\"a\": -1}"),
            "v.json: the value of \"a\" is not a token's number" + hint);
  EXPECT_EQ(error("{\"a\": {\"b\": 0}}"),
            "v.json: the value of \"a\" is not a token's number" + hint);
  EXPECT_EQ(error("{\"a\": 0, \"a\": 1}"),
            "v.json: \"a\" is there twice" + hint);
  EXPECT_EQ(
      error("{\"a\": 0, \"b\": 2}"),
      "v.json: its 2 texts do not have the numbers 0..1 once each" + hint);
  EXPECT_EQ(
      error("{\"a\": 0, \"b\": 0}"),
      "v.json: its 2 texts do not have the numbers 0..1 once each" + hint);
  EXPECT_THAT(error("{\"a\": 99999999999}"), HasSubstr("at most 4194303"));
  EXPECT_EQ(error("{}"), "v.json: it has no tokens" + hint);
}

}  // namespace
}  // namespace troupe::data

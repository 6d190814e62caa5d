#include "data/text/text_splits.h"

#include "base/field_error.h"
#include "data/text/embedded_corpus.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kText[] = "abcdefghijklmnopqrstuvwxyz";

std::string WriteText(const std::string& text) {
  return WriteFile(MakeTempFolder(), "text.txt",
                   Bytes(text.begin(), text.end()));
}

absl::StatusOr<TextSplits> OpenTextAt(const std::string& path,
                                      const TextOptions& options,
                                      double val_fraction = 0.25) {
  base::PosixFileSystem files;
  return OpenText(files, path, options, {val_fraction, /*seed=*/0});
}

TextOptions Sequential(const std::string& tokenizer, std::int64_t context) {
  TextOptions options;
  options.tokenizer = tokenizer;
  options.context = context;
  options.window = "sequential";
  return options;
}

TEST(TextSplitsTest, HoldsBackTheEnd) {
  const auto splits = OpenTextAt(WriteText(kText), Sequential("bytes", 4));
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 4);  // 20 tokens
  EXPECT_EQ(splits->test->size(), 2);   // 6 tokens, five targets
  EXPECT_THAT(ToVector<std::int64_t>(FillFrom(*splits->test, {0}).inputs),
              ElementsAre('u', 'v', 'w', 'x'));
  EXPECT_THAT(ToVector<std::int64_t>(FillFrom(*splits->test, {1}).targets),
              ElementsAre('z', -100, -100, -100));
  EXPECT_EQ(splits->train->spec(), splits->test->spec());
  EXPECT_EQ(splits->tokenizer->name(), "bytes");
}

TEST(TextSplitsTest, RefusesWhatIsNoText) {
  const auto error = [](const Bytes& bytes) {
    const std::string path = WriteFile(MakeTempFolder(), "text.txt", bytes);
    const std::string message(
        OpenTextAt(path, Sequential("bytes", 4)).status().message());
    return message.substr(message.find("text.txt"));
  };
  EXPECT_EQ(error(BytesOfText(kLfsPointer)),
            "text.txt: a pointer of git-lfs, not a text; fetch the file itself "
            "(git lfs pull)");
  EXPECT_EQ(error(Gzip(Bytes(900, 'a'))),
            "text.txt: a gzip file, not a text; unpack it");
  EXPECT_EQ(error(BytesOfText(absl::string_view("SQLite format 3\0..", 18)))
                .substr(0, 28),
            "text.txt: an SQLite database");
}

TEST(TextSplitsTest, ReadsTextsThatAreFormatsToo) {
  EXPECT_TRUE(OpenTextAt(WriteText("<!DOCTYPE html><html>A page.</html>"),
                         Sequential("bytes", 4))
                  .ok());
  EXPECT_TRUE(OpenTextAt(WriteText("version https://example.org/ of something"),
                         Sequential("chars", 4))
                  .ok());
}

TEST(TextSplitsTest, PadsByTheOptions) {
  TextOptions options = Sequential("bytes", 4);
  for (const std::int64_t ignored : {-1, 7}) {
    options.padding_target = ignored;
    const auto splits = OpenTextAt(WriteText(kText), options);
    ASSERT_TRUE(splits.ok()) << splits.status();
    EXPECT_THAT(ToVector<std::int64_t>(FillFrom(*splits->test, {1}).targets),
                ElementsAre('z', ignored, ignored, ignored));
  }
}

TEST(TextSplitsTest, HoldsNothingBackWithZero) {
  const auto splits = OpenTextAt(WriteText(kText), Sequential("bytes", 4), 0);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 6);
  EXPECT_EQ(splits->test, nullptr);
}

TEST(TextSplitsTest, CharactersComeFromTheWholeText) {
  const auto splits = OpenTextAt(WriteText(kText), Sequential("chars", 3));
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->spec().num_classes, 26);
  EXPECT_THAT(ToVector<std::int64_t>(FillFrom(*splits->test, {0}).inputs),
              ElementsAre(20, 21, 22));
}

TEST(TextSplitsTest, CharactersComeFromAFileWhereThereIsOne) {
  const std::string json = "{\"b\": 0, \"a\": 1}";
  TextOptions options = Sequential("chars", 2);
  options.tokenizer_path = WriteText(json);
  const auto splits = OpenTextAt(WriteText("abab"), options, 0);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_THAT(ToVector<std::int64_t>(FillFrom(*splits->train, {0}).inputs),
              ElementsAre(1, 0));
  const std::string path = WriteText("abc");
  EXPECT_EQ(OpenTextAt(path, options, 0).status().message(),
            path +
                ": the character \"c\" at byte 2 is not one of the 2 "
                "characters of the tokenizer's corpus; remove it, or use the "
                "tokenizer \"bytes\"");
}

TEST(TextSplitsTest, ErrorsBlameFields) {
  const auto fields = [](const TextOptions& options) {
    const auto splits = OpenTextAt(WriteText(kText), options);
    EXPECT_FALSE(splits.ok());
    const auto all = base::FieldsOf(splits.status());
    return all.empty() ? "" : all.front();
  };
  EXPECT_EQ(fields(Sequential("words", 4)), "TextOptions.tokenizer");
  EXPECT_EQ(fields(Sequential("bytes", 0)), "TextOptions.context");
  EXPECT_EQ(fields(Sequential("bytes", 20)), "TextOptions.context");
  TextOptions options = Sequential("bytes", 4);
  options.window = "sliding";
  EXPECT_EQ(fields(options), "TextOptions.window");
  EXPECT_THAT(
      std::string(OpenTextAt(WriteText(kText), options).status().message()),
      HasSubstr("TextOptions.window = \"sliding\": must be one of "
                "\"random\", \"sequential\""));
  options = Sequential("chars", 4);
  options.tokenizer_path = "/nowhere.json";
  EXPECT_EQ(fields(options), "TextOptions.tokenizer_path");
}

TEST(TextSplitsTest, NamesTheFileThatIsMissing) {
  EXPECT_THAT(std::string(OpenTextAt("/nowhere.txt", Sequential("bytes", 4))
                              .status()
                              .message()),
              HasSubstr("cannot read /nowhere.txt"));
}

TEST(TextSplitsTest, WithoutAFileThereIsTheEmbeddedCorpus) {
  TextOptions options;
  options.tokenizer = "chars";
  const auto splits = OpenTextAt("", options, 0.1);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->spec().input_shape, nn::Shape({256}));
  EXPECT_GT(splits->train->size(), 500);
  const auto decoded = splits->tokenizer->Encode("namespace troupe::data {");
  EXPECT_TRUE(decoded.ok()) << decoded.status();
}

TEST(EmbeddedCorpusTest, IsSourcesInTheOrderOfTheirPaths) {
  const absl::string_view corpus = EmbeddedCorpus();
  EXPECT_GT(corpus.size(), 200u << 10);
  EXPECT_LT(corpus.size(), 1u << 20);
  EXPECT_EQ(corpus.substr(0, 8), "// base/");
  const std::size_t base = corpus.find("// base/check.h\n// Ends the pro");
  const std::size_t nn = corpus.find("\n// nn/tensor/tensor.h\n// A contig");
  EXPECT_LT(base, nn);
  EXPECT_NE(nn, absl::string_view::npos);
  for (const char c : corpus) {
    // No control character; what is above 127 is UTF-8.
    ASSERT_TRUE(c == '\n' || c < 0 || (c >= ' ' && c <= '~')) << int{c};
  }
}

// The real text, where it is: 65 characters, as nanoGPT counts.
TEST(TextSplitsTest, TinyShakespeare) {
  const std::string path = FindRealData("tinyshakespeare.txt");
  if (path.empty()) GTEST_SKIP() << "no shared/data/tinyshakespeare.txt";
  TextOptions options;
  options.tokenizer = "chars";
  const auto splits = OpenTextAt(path, options, 0.1);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->spec().num_classes, 65);
  const auto tokens = splits->tokenizer->Encode("First");
  EXPECT_THAT(*tokens, ElementsAre(18, 47, 56, 57, 58));
}

}  // namespace
}  // namespace troupe::data

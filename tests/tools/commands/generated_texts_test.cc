#include "tools/trainer/commands/generated_texts.h"

#include <string>
#include <vector>

#include "data/text/byte_tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::tools {
namespace {

using testing::ElementsAre;

struct Written {
  std::string text;
  std::vector<std::string> notes;
  absl::Status ended, status;
};

// Generates "ab" for the first of `prompts`, an error after "c" for the second,
// and "d" for the last.
Written WithAnError(const std::vector<std::string>& prompts, bool json,
                    const absl::Status& error) {
  Written written;
  const std::function<bool(absl::string_view)> write =
      [&](absl::string_view text) {
        written.text.append(text.data(), text.size());
        return true;
      };
  GeneratedTexts::Options options;
  options.json = json;
  options.tokens = 2;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    options.names.push_back("p.txt:" + std::to_string(i + 1));
  }
  options.note = [&](const std::string& line) {
    written.notes.push_back(line);
  };
  const data::TokenizerPtr tokenizer = data::MakeByteTokenizer();
  GeneratedTexts texts(prompts, *tokenizer, options, write);
  EXPECT_TRUE(texts.OnToken(0, 'a'));
  EXPECT_TRUE(texts.OnToken(1, 'c'));
  written.ended = texts.OnError(1, error);
  EXPECT_TRUE(texts.OnToken(0, 'b'));
  EXPECT_TRUE(texts.OnEnd(0));
  EXPECT_TRUE(texts.OnToken(2, 'd'));
  EXPECT_TRUE(texts.OnEnd(2));
  written.status = texts.status();
  return written;
}

TEST(GeneratedTextsTest, AnErrorOfAPromptIsNamedAndTheOthersGoOn) {
  const absl::Status error = absl::InvalidArgumentError("a logit is nan");
  const Written plain = WithAnError({"1", "2", "3"}, /*json=*/false, error);
  EXPECT_TRUE(plain.ended.ok());
  EXPECT_EQ(plain.text, "1ab\n\n2c\n\n3d\n");
  EXPECT_THAT(plain.notes, ElementsAre("p.txt:2: a logit is nan"));
  EXPECT_EQ(plain.status,
            absl::InvalidArgumentError("1 of 3 prompts ended by an error; the "
                                       "first: p.txt:2: a logit is nan"));
  const Written json = WithAnError({"1", "2", "3"}, /*json=*/true, error);
  EXPECT_EQ(json.text,
            R"({"prompt":"1","text":"ab","tokens":2,"finish_reason":"length"}
{"prompt":"2","text":"c","tokens":1,"finish_reason":"error","error":"a logit is nan"}
{"prompt":"3","text":"d","tokens":1,"finish_reason":"stop"}
)");
}

// Silence and broken files are no prompt's.
TEST(GeneratedTextsTest, OtherErrorsEndAllTexts) {
  const Written written = WithAnError({"1", "2", "3"}, /*json=*/false,
                                      absl::DeadlineExceededError("silence"));
  EXPECT_EQ(written.ended, absl::DeadlineExceededError("p.txt:2: silence"));
  EXPECT_TRUE(written.notes.empty());
}

}  // namespace
}  // namespace troupe::tools

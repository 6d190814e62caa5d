#include "data/text/token_file.h"

#include <sys/resource.h>

#include <cstring>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "data/text/text_splits.h"
#include "data/text/token_shards.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
Bytes BytesOf(const std::vector<T>& numbers) {
  Bytes bytes(numbers.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

template <typename T>
Bytes WithHeader(std::int32_t magic, std::int32_t version, std::int32_t count,
                 const std::vector<T>& tokens) {
  std::vector<std::int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  Bytes bytes = BytesOf(header);
  const Bytes rest = BytesOf(tokens);
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

absl::StatusOr<TokenSourcePtr> Open(const Bytes& bytes,
                                    const TokenFileOptions& options = {}) {
  base::PosixFileSystem files;
  return OpenTokenFile(files, WriteFile(MakeTempFolder(), "t.bin", bytes),
                       options);
}

std::vector<std::int64_t> All(const TokenSourcePtr& tokens) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(tokens->size()));
  EXPECT_TRUE(tokens->Read(0, absl::MakeSpan(all)).ok());
  return all;
}

std::string Error(const Bytes& bytes) {
  const std::string message(Open(bytes).status().message());
  return message.substr(message.find("t.bin"));
}

TEST(TokenFileTest, NanoGptsFilesAreBare) {
  const auto tokens = Open(BytesOf<std::uint16_t>({1, 50256, 0, 300}));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ((*tokens)->vocab_size(), 50257);
  EXPECT_THAT(All(*tokens), ElementsAre(1, 50256, 0, 300));
  std::vector<std::int64_t> two(2);
  ASSERT_TRUE((*tokens)->Read(2, absl::MakeSpan(two)).ok());
  EXPECT_THAT(two, ElementsAre(0, 300));
}

TEST(TokenFileTest, BareFilesMayHaveMoreBits) {
  TokenFileOptions options;
  options.bare_type = TokenType::kU32;
  options.vocab_size = 128256;
  const auto tokens = Open(BytesOf<std::uint32_t>({128255, 7}), options);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(All(*tokens), ElementsAre(128255, 7));
}

TEST(TokenFileTest, LlmCsFilesHaveAHeader) {
  const auto gpt2 =
      Open(WithHeader<std::uint16_t>(20240520, 1, 3, {5, 6, 50256}));
  ASSERT_TRUE(gpt2.ok()) << gpt2.status();
  EXPECT_THAT(All(*gpt2), ElementsAre(5, 6, 50256));
  TokenFileOptions options;
  options.vocab_size = 128256;
  const auto llama =
      Open(WithHeader<std::uint32_t>(20240801, 7, 2, {128000, 9}), options);
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_THAT(All(*llama), ElementsAre(128000, 9));
}

TEST(TokenFileTest, SaysWhatIsWrong) {
  EXPECT_EQ(Error({1, 2, 3}),
            "t.bin: 3 bytes are not a whole number of tokens of 2 bytes; give "
            "a file of bare tokens, or the real type of tokens");
  EXPECT_EQ(Error(WithHeader<std::uint16_t>(20240520, 2, 1, {5})),
            "t.bin: version 2 at byte 4; of files with the magic 20240520 only "
            "version 1 is read; write it anew");
  EXPECT_EQ(Error(WithHeader<std::uint16_t>(20240520, 1, 2, {5})),
            "t.bin: the header declares 2 tokens at byte 8, 1028 bytes in all, "
            "but the file has 1026; replace it by a whole copy");
  EXPECT_THAT(Error(WithHeader<std::uint16_t>(20240520, 1, -1, {5})),
              HasSubstr("declares -1 tokens"));
  EXPECT_EQ(Open({1}).status().code(), absl::StatusCode::kDataLoss);
}

TEST(TokenFileTest, RefusesFilesOfOtherFormats) {
  EXPECT_THAT(
      Error(BytesOfText("\x93NUMPY\1 {'descr': '<u2'}")),
      HasSubstr("t.bin: an array of NumPy (.npy), not a file of tokens; "
                "write its numbers alone"));
  EXPECT_EQ(Error(BytesOfText(kLfsPointer)),
            "t.bin: a pointer of git-lfs, not a file of tokens; fetch the file "
            "itself (git lfs pull)");
  EXPECT_EQ(Error(Gzip(BytesOf<std::uint16_t>({1, 2, 3}))),
            "t.bin: a gzip file, not a file of tokens; unpack it");
  EXPECT_EQ(Error(BytesOfText("PAR1PAR1")).substr(0, 22),
            "t.bin: a Parquet table");
}

TEST(TokenFileTest, RefusesOtherFilesOfLlmC) {
  const std::vector<float> weights(9);
  EXPECT_EQ(Error(WithHeader(20240326, 3, 1024, weights)),
            "t.bin: a model of llm.c (magic 20240326), not a file of tokens; "
            "give a file that its data scripts wrote");
  EXPECT_THAT(Error(WithHeader(20240328, 2, 50257, weights)),
              HasSubstr("a tokenizer of llm.c"));
  EXPECT_THAT(Error(WithHeader(20240803, 5, 8192, weights)),
              HasSubstr("a Llama-3 model of llm.c"));
}

// The bytes of a text are numbers that GPT-2's vocabulary has.
TEST(TokenFileTest, RefusesTexts) {
  std::string english, german;
  while (english.size() < 600) english += "To be, or not to be: that is it.\n";
  while (german.size() < 601) german += "\u00dcber den V\u00f6geln ";
  for (const std::string& text : {english, english.substr(0, 80), german}) {
    EXPECT_THAT(Error(BytesOfText(text)),
                HasSubstr("t.bin: a text, not a file of tokens; read it as "
                          "data of kind \"text\""));
  }
  EXPECT_TRUE(Open(BytesOf(std::vector<std::uint16_t>(64, 'a'))).ok());
}

TEST(TokenFileTest, ReadingChecksTheVocabulary) {
  TokenFileOptions options;
  options.vocab_size = 300;
  const auto tokens =
      Open(WithHeader<std::uint16_t>(20240520, 1, 3, {299, 300, 1}), options);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  std::vector<std::int64_t> one(1);
  EXPECT_TRUE((*tokens)->Read(0, absl::MakeSpan(one)).ok());
  const absl::Status status = (*tokens)->Read(1, absl::MakeSpan(one));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("t.bin: token 1 at byte 1026 is 300, which a "
                        "vocabulary of 300 does not have"));
}

// Any bytes are an error, or tokens below the vocabulary's size.
TEST(TokenFileTest, DamagedFiles) {
  const Bytes good = WithHeader<std::uint16_t>(20240520, 1, 4, {1, 2, 3, 4});
  int opened = 0;
  constexpr std::uint32_t kRounds = 400;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    nn::RandomStream draws(nn::RandomKey(3, nn::Purpose::kTest), {round, 0, 0});
    Bytes bytes = good;
    bytes[draws.Below(12)] = static_cast<std::uint8_t>(draws.Bits32());
    if (draws.Below(2) == 0) bytes.resize(draws.Below(bytes.size()));
    const auto tokens = Open(bytes);
    if (!tokens.ok()) continue;
    ++opened;
    std::vector<std::int64_t> all(static_cast<std::size_t>((*tokens)->size()));
    const absl::Status read = (*tokens)->Read(0, absl::MakeSpan(all));
    for (const std::int64_t token : all) {
      EXPECT_TRUE(!read.ok() || token < 50257);
    }
  }
  EXPECT_GT(opened, 0);
  EXPECT_LT(opened, static_cast<int>(kRounds));
}

TEST(OpenTokensTest, SplitsAFileAndTakesTheFilesOfAFolder) {
  const auto files = std::make_shared<base::PosixFileSystem>();
  const std::string folder = MakeTempFolder();
  TextOptions options;
  options.context = 2;
  options.window = "sequential";
  options.vocab_size = 100;
  const std::string file =
      WriteFile(folder, "all.bin",
                BytesOf<std::uint16_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  auto splits = OpenTokens(files, file, options, {/*val_fraction=*/0.3, 0});
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 3);
  EXPECT_EQ(splits->train->spec().ToString(),
            "i64[2] -> i64[2] of 100 classes");
  EXPECT_THAT(ToVector<std::int64_t>(FillFrom(*splits->test, {0}).targets),
              ElementsAre(8, 9));
  WriteFile(folder, "train.bin", BytesOf<std::uint16_t>({1, 2, 3}));
  splits = OpenTokens(files, folder, options, {/*val_fraction=*/0.3, 0});
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 1);
  EXPECT_EQ(splits->test, nullptr);
  EXPECT_EQ(splits->tokenizer, nullptr);
  WriteFile(folder, "val.bin", BytesOf<std::uint16_t>({7, 8}));
  splits = OpenTokens(files, folder, options, {/*val_fraction=*/0.3, 0});
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_THAT(ToVector<std::int64_t>(FillFrom(*splits->test, {0}).targets),
              ElementsAre(8, -100));
}

Bytes Shard(const std::vector<std::uint16_t>& tokens) {
  return WithHeader<std::uint16_t>(
      20240520, 1, static_cast<std::int32_t>(tokens.size()), tokens);
}

TEST(OpenTokensTest, APatternJoinsFiles) {
  const auto files = std::make_shared<base::PosixFileSystem>();
  const std::string folder = MakeTempFolder();
  TextOptions options;
  options.context = 2;
  options.window = "sequential";
  WriteFile(folder, "s_train_000002.bin", Shard({4, 5, 6}));
  WriteFile(folder, "s_train_000001.bin", Shard({0, 1, 2, 3}));
  WriteFile(folder, "s_train_000010.bin", BytesOf<std::uint16_t>({7, 8}));
  WriteFile(folder, "notes.txt", {'x'});
  const std::string pattern = folder + "/s_*.bin";
  auto splits = OpenTokens(files, pattern, options, {/*val_fraction=*/0, 0});
  ASSERT_TRUE(splits.ok()) << splits.status();
  ASSERT_EQ(splits->train->size(), 4);
  const DatasetPtr train = splits->train;
  EXPECT_THAT(ToVector<std::int64_t>(FillFrom(*train, {0, 1, 2, 3}).inputs),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(ToVector<std::int64_t>(FillFrom(*train, {0, 1, 2, 3}).targets),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(splits->notes,
              ElementsAre(pattern + ": 3 files of tokens to train on"));
  EXPECT_EQ(splits->test, nullptr);
  // llm.c names them so.
  WriteFile(folder, "s_val_000000.bin", Shard({50, 51, 52}));
  splits = OpenTokens(files, pattern, options, {/*val_fraction=*/0.5, 0});
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 4);
  EXPECT_THAT(ToVector<std::int64_t>(FillFrom(*splits->test, {0}).targets),
              ElementsAre(51, 52));
  EXPECT_THAT(splits->notes,
              ElementsAre(pattern + ": 3 files of tokens to train on, 1 to "
                                    "test with"));
  EXPECT_EQ(
      OpenTokens(files, folder + "/s_val_*", options, {0.0, 0})->train->size(),
      1)
      << "there is no other to train on";
}

TEST(OpenTokensTest, AnEvaluationOpensTheTestFilesAlone) {
  const auto files = std::make_shared<base::PosixFileSystem>();
  TextOptions options;
  options.context = 2;
  SplitOptions split;
  split.val_fraction = 0.5;
  const std::string folder = MakeTempFolder(), pattern = folder + "/*.bin";
  WriteFile(folder, "val.bin", BytesOf<std::uint16_t>({1, 2, 3, 4, 5}));
  const std::string alone = OpenTokens(files, pattern, options, split)->content;
  const auto tested = [&](const std::string& path,
                          const std::string& trained_on) {
    split.trained_on = trained_on;
    const auto splits = OpenTokens(files, path, options, split);
    EXPECT_TRUE(splits.ok()) << splits.status();
    return splits->test->size();
  };
  EXPECT_EQ(tested(folder, ""), 2);
  EXPECT_EQ(tested(pattern, "files that are gone"), 2);
  EXPECT_EQ(tested(pattern, alone), 1) << "the model has seen the first half";
  // Files to train on are not even opened.
  WriteFile(folder, "train.bin", Bytes(3, 0));
  EXPECT_FALSE(OpenTokens(files, folder, options, {}).ok());
  EXPECT_EQ(tested(folder, ""), 2);
  EXPECT_EQ(OpenTokens(files, folder, options, split)->train, nullptr);
  // Without a test file, nothing is left.
  split.trained_on = "";
  const std::string empty = MakeTempFolder();
  EXPECT_FALSE(OpenTokens(files, empty, options, split).ok());
}

// Number of files that this process has open.
std::size_t OpenFiles() {
  return base::PosixFileSystem().List("/proc/self/fd")->size();
}

// Limits the number of files that this process may have open, for a scope.
class FileLimit {
 public:
  explicit FileLimit(std::size_t files) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit lower = before_;
    lower.rlim_cur = files;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &lower), 0);
  }
  ~FileLimit() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_ = {};
};

// Writes the shards 000.bin, 001.bin, ...; shard i has tokens 2i and 2i + 1.
std::string FolderOfShards(int count) {
  const std::string folder = MakeTempFolder();
  for (int i = 0; i < count; ++i) {
    const auto first = static_cast<std::uint16_t>(2 * i);
    WriteFile(folder, absl::StrCat(absl::Dec(i, absl::kZeroPad3), ".bin"),
              Shard({first, static_cast<std::uint16_t>(first + 1)}));
  }
  return folder;
}

// The second number is less than the files that are kept open otherwise.
TEST(OpenTokensTest, MoreFilesThanAProcessMayHaveOpen) {
  constexpr int kFiles = 400;
  const std::string folder = FolderOfShards(kFiles);
  TextOptions options;
  options.context = 1;
  options.window = "sequential";
  for (const std::size_t more : {std::size_t{200}, std::size_t{9}}) {
    SCOPED_TRACE(more);
    const FileLimit limit(OpenFiles() + more);
    const auto splits =
        OpenTokens(std::make_shared<base::PosixFileSystem>(), folder + "/*.bin",
                   options, {/*val_fraction=*/0, 0});
    ASSERT_TRUE(splits.ok()) << splits.status();
    const DatasetPtr train = splits->train;
    ASSERT_EQ(train->size(), 2 * kFiles - 1);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([train, t] {
        for (std::int64_t i = 0; i < 2 * kFiles - 1; ++i) {
          const std::int64_t sample = (i * 37 + t * 100) % (2 * kFiles - 1);
          const Filled filled = FillFrom(*train, {sample});
          ASSERT_TRUE(filled.status.ok()) << filled.status;
          ASSERT_EQ(ToVector<std::int64_t>(filled.inputs)[0], sample);
          ASSERT_EQ(ToVector<std::int64_t>(filled.targets)[0], sample + 1);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(OpenTokensTest, FewFilesOfAPatternAreOpen) {
  const std::string folder = FolderOfShards(300);
  TextOptions options;
  options.context = 1;
  const std::size_t before = OpenFiles();
  const auto splits = OpenTokens(std::make_shared<base::PosixFileSystem>(),
                                 folder + "/*.bin", options, {0.0, 0});
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(OpenFiles() - before, kOpenTokenFilesMax);
}

// A file that is opened again must be the same.
TEST(OpenTokensTest, ShardsMayNotChangeDuringARun) {
  const std::string folder = FolderOfShards(300);
  TextOptions options;
  options.context = 1;
  options.window = "sequential";
  const auto splits = OpenTokens(std::make_shared<base::PosixFileSystem>(),
                                 folder + "/*.bin", options, {0.0, 0});
  ASSERT_TRUE(splits.ok()) << splits.status();
  // All others were opened after it.
  WriteFile(folder, "001.bin", Shard({1, 2, 3}));
  EXPECT_EQ(FillFrom(*splits->train, {2}).status.message(),
            folder +
                "/001.bin has 1030 bytes, and had 1028 when it was opened; "
                "leave it as it is during a run");
}

TEST(OpenTokensTest, ErrorsOfAPatternNameTheFile) {
  const auto files = std::make_shared<base::PosixFileSystem>();
  const std::string folder = MakeTempFolder();
  TextOptions options;
  options.context = 2;
  options.vocab_size = 10;
  EXPECT_EQ(
      OpenTokens(files, folder + "/*.bin", options, {}).status().message(),
      "no file is called " + folder +
          "/*.bin; give a pattern of the names of token files");
  EXPECT_FALSE(OpenTokens(files, folder + "/none/*", options, {}).ok());
  WriteFile(folder, "a.bin", Shard({0, 1, 2, 3}));
  const std::string second = WriteFile(folder, "b.bin", Shard({0, 11, 2, 3}));
  options.window = "sequential";
  const auto splits = OpenTokens(files, folder + "/?.bin", options, {0.0, 0});
  ASSERT_TRUE(splits.ok()) << splits.status();
  nn::CachingAllocator memory;
  const SampleSpec& spec = splits->train->spec();
  const nn::Tensor input =
      nn::Tensor::Empty(spec.InputShape(1), spec.input_dtype, memory);
  const nn::Tensor target =
      nn::Tensor::Empty(spec.TargetShape(1), spec.target_dtype, memory);
  EXPECT_THAT(std::string(splits->train->Fill({2}, 0, input, target).message()),
              testing::StartsWith(second + ": token 1 at byte 1026 is 11"));
  Bytes cut = Shard({1, 2, 3});
  cut.resize(cut.size() - 1);
  WriteFile(folder, "b.bin", cut);
  EXPECT_THAT(
      std::string(OpenTokens(files, folder + "/*.bin", options, {0.0, 0})
                      .status()
                      .message()),
      testing::StartsWith(second + ": the header declares 3 tokens"));
}

TEST(OpenTokensTest, TestFilesHaveAnyUsualName) {
  const auto files = std::make_shared<base::PosixFileSystem>();
  TextOptions options;
  options.context = 2;
  const std::string folder = MakeTempFolder();
  WriteFile(folder, "val.txt", {'x'});
  EXPECT_EQ(OpenTokens(files, folder, options, {}).status().message(),
            "no " + folder +
                "/train.bin; name the file to train on so, or give its path, "
                "or a pattern for several: " +
                folder + "/*.bin");
  WriteFile(folder, "train.bin", BytesOf<std::uint16_t>({1, 2, 3}));
  // Each goes over those before it.
  std::uint16_t token = 0;
  for (const char* name :
       {"test.bin", "dev.bin", "validation.bin", "valid.bin", "val.bin"}) {
    WriteFile(folder, name, BytesOf<std::uint16_t>({0, ++token}));
    const auto splits = OpenTokens(files, folder, options, {});
    ASSERT_TRUE(splits.ok()) << splits.status();
    ASSERT_NE(splits->test, nullptr) << name;
    EXPECT_THAT(ToVector<std::int64_t>(FillFrom(*splits->test, {0}).targets),
                ElementsAre(token, -100));
  }
}

}  // namespace
}  // namespace troupe::data

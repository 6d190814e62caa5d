#include "data/text/text_splits.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/foreign_format.h"
#include "data/content_hash.h"
#include "data/text/bpe_tokenizer.h"
#include "data/text/byte_tokenizer.h"
#include "data/text/char_tokenizer.h"
#include "data/text/embedded_corpus.h"
#include "data/text/token_file.h"
#include "data/text/token_shards.h"
#include "data/text/vocabulary_file.h"

namespace troupe::data {
namespace {

constexpr char kBytes[] = "bytes";
constexpr char kChars[] = "chars";
constexpr char kGpt2[] = "gpt2";
constexpr char kRandomWindow[] = "random";
constexpr char kSequentialWindow[] = "sequential";
constexpr char kU16[] = "u16";
constexpr char kU32[] = "u32";
constexpr char kTrainFile[] = "train.bin";
// The first that exists is the test part.
constexpr const char* kTestFiles[] = {"val.bin", "valid.bin", "validation.bin",
                                      "dev.bin", "test.bin"};

template <auto kField>
absl::Status CheckOneOf(const TextOptions& options,
                        const std::vector<std::string>& names) {
  const std::string& value = options.*kField;
  if (std::find(names.begin(), names.end(), value) != names.end()) {
    return absl::OkStatus();
  }
  return base::FieldError<kField>(absl::StrCat(
      base::FieldName<kField>(), " = \"", value, "\": must be one of \"",
      absl::StrJoin(names, "\", \""), "\""));
}

// Returns windows of the tokens in `range`, the part of the data called `part`.
// The only error is that there are too few tokens.
absl::StatusOr<DatasetPtr> MakeWindows(const TokenSourcePtr& tokens,
                                       const Range& range,
                                       const WindowOptions& windows,
                                       const char* part) {
  absl::StatusOr<DatasetPtr> made = MakeTokenWindows(tokens, range, windows);
  if (made.ok()) return made;
  return base::FieldError<&TextOptions::context, &SplitOptions::val_fraction>(
      absl::StrCat("the ", part, " part of the text has ", range.size(),
                   " tokens, too few for a window of ", windows.context,
                   " and its targets; make ",
                   base::FieldName<&TextOptions::context>(),
                   " smaller, or give more text"));
}

absl::StatusOr<DatasetPtr> MakeTrain(const TokenSourcePtr& tokens,
                                     std::int64_t end,
                                     const TextOptions& options,
                                     std::uint64_t seed) {
  WindowOptions windows;
  windows.context = options.context;
  windows.seed = seed;
  windows.order = options.window == kRandomWindow ? WindowOrder::kRandom
                                                  : WindowOrder::kSequential;
  return MakeWindows(tokens, {0, end}, windows, "training");
}

absl::StatusOr<DatasetPtr> MakeTest(const TokenSourcePtr& tokens,
                                    std::int64_t begin,
                                    const TextOptions& options) {
  WindowOptions windows;
  windows.context = options.context;
  windows.order = WindowOrder::kSequential;
  windows.pad_last = true;
  windows.padding_target = options.padding_target;
  return MakeWindows(tokens, {begin, tokens->size()}, windows, "test");
}

// Number and length of the samples of a file of tokens.
constexpr std::int64_t kHashedRuns = 64, kHashedTokens = 256;

// Returns a hash of the number of tokens and of runs of them, evenly spaced
// from the first to the last. Empty if they cannot be read, which a batch will
// report.
std::string HashOfSamples(const TokenSource& tokens) {
  ContentHash hash;
  hash.Add(tokens.size());
  const std::int64_t length = std::min(tokens.size(), kHashedTokens);
  std::vector<std::int64_t> run(length);
  for (std::int64_t i = 0; i < kHashedRuns; ++i) {
    const double part = static_cast<double>(i) / (kHashedRuns - 1);
    const auto begin = static_cast<std::int64_t>(
        part * static_cast<double>(tokens.size() - length));
    if (!tokens.Read(begin, absl::MakeSpan(run)).ok()) return "";
    hash.Add(run);
  }
  return hash.ToString();
}

absl::StatusOr<TextSplits> SplitTokens(const TokenSourcePtr& tokens,
                                       const TextOptions& options,
                                       const SplitOptions& split) {
  const auto held = static_cast<std::int64_t>(
      static_cast<double>(tokens->size()) * split.val_fraction);
  const std::int64_t cut = tokens->size() - held;
  TextSplits splits;
  TROUPE_ASSIGN_OR_RETURN(splits.train,
                          MakeTrain(tokens, cut, options, split.seed));
  splits.content = HashOfSamples(*tokens);
  if (split.val_fraction == 0) return splits;
  TROUPE_ASSIGN_OR_RETURN(splits.test, MakeTest(tokens, cut, options));
  return splits;
}

// Returns windows of both parts, each of which may be null.
absl::StatusOr<TextSplits> PartsOf(const TokenSourcePtr& train,
                                   const TokenSourcePtr& test,
                                   const TextOptions& options,
                                   const SplitOptions& split) {
  TextSplits splits;
  if (train != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(
        splits.train, MakeTrain(train, train->size(), options, split.seed));
    splits.content = HashOfSamples(*train);
  }
  if (test == nullptr) return splits;
  TROUPE_ASSIGN_OR_RETURN(splits.test, MakeTest(test, /*begin=*/0, options));
  return splits;
}

// Refuses files that are certainly no text. Other bytes may be one, of the
// tokenizer "bytes".
absl::Status CheckIsText(absl::string_view bytes, const std::string& path) {
  const auto format = base::RecogniseFormat(bytes);
  if (!format.has_value() || format->is_text) return absl::OkStatus();
  return base::RefuseForeignFormat(bytes, path, "not a text");
}

// Returns the path of the folder's test file; empty: it has none.
std::string TestFileOf(base::FileSystem& files, const std::string& folder) {
  for (const char* name : kTestFiles) {
    const std::string test = base::JoinPath(folder, name);
    if (files.Exists(test)) return test;
  }
  return "";
}

// Opens the files of a folder: `test`, unless it is empty, and the one to train
// on, unless only `test` is wanted.
absl::StatusOr<TextSplits> OpenTokenFolder(base::FileSystem& files,
                                           const std::string& folder,
                                           const std::string& test,
                                           const TokenFileOptions& file,
                                           const TextOptions& options,
                                           const SplitOptions& split) {
  TokenSourcePtr of_train, of_test;
  if (!split.trained_on || test.empty()) {
    TROUPE_ASSIGN_OR_RETURN(
        of_train,
        OpenTokenFile(files, base::JoinPath(folder, kTrainFile), file));
  }
  if (!test.empty()) {
    TROUPE_ASSIGN_OR_RETURN(of_test, OpenTokenFile(files, test, file));
  }
  return PartsOf(of_train, of_test, options, split);
}

absl::StatusOr<TextSplits> SplitShards(const TokenShards& shards,
                                       const TextOptions& options,
                                       const SplitOptions& split) {
  const std::string trained_on = split.trained_on.value_or("");
  // Without the files that the model was trained on, all names say "test".
  if (shards.only_tests && !trained_on.empty() &&
      trained_on != HashOfSamples(*shards.train)) {
    return PartsOf(nullptr, shards.train, options, split);
  }
  if (shards.test == nullptr) return SplitTokens(shards.train, options, split);
  return PartsOf(split.trained_on ? nullptr : shards.train, shards.test,
                 options, split);
}

}  // namespace

std::string VocabularyHash(const Tokenizer& tokenizer) {
  ContentHash hash;
  hash.Add(tokenizer.name());
  for (Token token = 0; token < tokenizer.vocab_size(); ++token) {
    const absl::StatusOr<std::string> text = tokenizer.Decode({token});
    hash.Add(text.ok() ? *text : "");
  }
  return hash.ToString();
}

std::vector<std::string> TokenizerNames() { return {kBytes, kChars, kGpt2}; }

std::vector<std::string> WindowNames() {
  return {kRandomWindow, kSequentialWindow};
}

std::vector<std::string> TokenTypeNames() { return {kU16, kU32}; }

absl::Status TextOptions::Validate() const {
  TROUPE_RETURN_IF_ERROR(
      CheckOneOf<&TextOptions::tokenizer>(*this, TokenizerNames()));
  TROUPE_RETURN_IF_ERROR(
      CheckOneOf<&TextOptions::window>(*this, WindowNames()));
  if (tokenizer == kGpt2 && tokenizer_path.empty()) {
    return base::FieldError<&TextOptions::tokenizer,
                            &TextOptions::tokenizer_path>(absl::StrCat(
        base::FieldName<&TextOptions::tokenizer>(), " = \"", kGpt2, "\" needs ",
        base::FieldName<&TextOptions::tokenizer_path>(),
        "; set it to the folder of vocab.json and merges.txt"));
  }
  if (context < 1 || context > kContextMax) {
    return base::FieldError<&TextOptions::context>(
        absl::StrCat(base::FieldName<&TextOptions::context>(), " = ", context,
                     ": must be 1 to ", kContextMax, " tokens"));
  }
  if (vocab_size < 1 || vocab_size > kVocabSizeMax) {
    return base::FieldError<&TextOptions::vocab_size>(
        absl::StrCat(base::FieldName<&TextOptions::vocab_size>(), " = ",
                     vocab_size, ": must be 1 to ", kVocabSizeMax));
  }
  return CheckOneOf<&TextOptions::token_type>(*this, TokenTypeNames());
}

absl::StatusOr<TokenizerPtr> OpenTokenizer(base::FileSystem& files,
                                           const TextOptions& options,
                                           absl::string_view corpus) {
  TROUPE_RETURN_IF_ERROR(options.Validate());
  const std::string& path = options.tokenizer_path;
  absl::StatusOr<TokenizerPtr> tokenizer =
      options.tokenizer == kBytes  ? MakeByteTokenizer()
      : options.tokenizer == kGpt2 ? ReadBpeTokenizer(files, path)
      : path.empty()               ? MakeCharTokenizer(corpus)
                                   : ReadCharTokenizer(files, path);
  if (tokenizer.ok()) return tokenizer;
  return base::WithFields<&TextOptions::tokenizer_path,
                          &TextOptions::tokenizer>(tokenizer.status());
}

absl::StatusOr<TextSplits> OpenText(base::FileSystem& files,
                                    const std::string& path,
                                    const TextOptions& options,
                                    const SplitOptions& split) {
  std::string read;
  absl::string_view text = EmbeddedCorpus();
  if (!path.empty()) {
    TROUPE_ASSIGN_OR_RETURN(read,
                            base::ReadWholeFile(files, path, kTextBytesMax));
    TROUPE_RETURN_IF_ERROR(CheckIsText(read, path));
    text = read;
  }
  TROUPE_ASSIGN_OR_RETURN(TokenizerPtr tokenizer,
                          OpenTokenizer(files, options, text));
  absl::StatusOr<std::vector<Token>> tokens = tokenizer->Encode(text);
  if (!tokens.ok()) {
    return base::WithFields<&TextOptions::tokenizer>(base::WithMessage(
        tokens.status(),
        absl::StrCat(path.empty() ? "the embedded corpus" : path, ": ",
                     tokens.status().message())));
  }
  TROUPE_ASSIGN_OR_RETURN(
      const TokenSourcePtr source,
      MakeTokenSource(*std::move(tokens), tokenizer->vocab_size()));
  TROUPE_ASSIGN_OR_RETURN(TextSplits splits,
                          SplitTokens(source, options, split));
  splits.tokenizer = std::move(tokenizer);
  ContentHash content;
  content.Add(text);
  splits.content = content.ToString();
  return splits;
}

absl::StatusOr<TextSplits> OpenTokens(std::shared_ptr<base::FileSystem> disk,
                                      const std::string& path,
                                      const TextOptions& options,
                                      const SplitOptions& split) {
  base::FileSystem& files = *disk;
  TROUPE_RETURN_IF_ERROR(options.Validate());
  TokenFileOptions file;
  file.vocab_size = options.vocab_size;
  file.bare_type =
      options.token_type == kU16 ? TokenType::kU16 : TokenType::kU32;
  const std::string test = TestFileOf(files, path);
  TextSplits splits;
  if (IsTokenPattern(path) && !files.Exists(path)) {
    TROUPE_ASSIGN_OR_RETURN(const TokenShards opened,
                            OpenTokenShards(disk, path, file));
    TROUPE_ASSIGN_OR_RETURN(splits, SplitShards(opened, options, split));
    splits.notes.push_back(opened.note);
  } else if (files.Exists(base::JoinPath(path, kTrainFile)) ||
             (split.trained_on && !test.empty())) {
    TROUPE_ASSIGN_OR_RETURN(
        splits, OpenTokenFolder(files, path, test, file, options, split));
  } else if (files.List(path).ok()) {
    return absl::NotFoundError(absl::StrCat(
        "no ",
        split.trained_on ? absl::StrCat(base::JoinPath(path, kTestFiles[0]),
                                        " to evaluate, nor ")
                         : "",
        base::JoinPath(path, kTrainFile),
        "; name the file to train on so, or give its path, or a "
        "pattern for several: ",
        base::JoinPath(path, "*.bin")));
  } else {
    TROUPE_ASSIGN_OR_RETURN(const TokenSourcePtr tokens,
                            OpenTokenFile(files, path, file));
    TROUPE_ASSIGN_OR_RETURN(splits, SplitTokens(tokens, options, split));
  }
  if (!options.tokenizer_path.empty()) {
    TROUPE_ASSIGN_OR_RETURN(splits.tokenizer,
                            OpenTokenizer(files, options, /*corpus=*/""));
  }
  return splits;
}

}  // namespace troupe::data

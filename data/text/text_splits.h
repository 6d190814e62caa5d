// Opens a text as training and test windows (data.kind = "text").
//
//   TextOptions options;
//   options.tokenizer = "chars";
//   options.context = 64;
//   TROUPE_ASSIGN_OR_RETURN(
//       TextSplits splits,
//       OpenText(files, "tinyshakespeare.txt", options,
//                {/*val_fraction=*/0.1, /*seed=*/0}));
//   splits.train->spec().num_classes;          // of the vocabulary, 65
//   splits.tokenizer->Encode("ROMEO:");
//
// The text is tokenised as a whole when it is opened. The last `val_fraction`
// of its tokens is the test part, in windows that do not overlap and that count
// every token once (token_windows.h). OpenTokens() opens files of tokens
// (data.kind = "tokens").

#ifndef DATA_TEXT_TEXT_SPLITS_H_
#define DATA_TEXT_TEXT_SPLITS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "data/dataset.h"
#include "data/split_options.h"
#include "data/text/token_source.h"
#include "data/text/token_windows.h"
#include "data/text/tokenizer.h"

namespace troupe::data {

// Limit on a text that is tokenised when it is opened; longer ones belong into
// a token file (token_file.h).
inline constexpr std::int64_t kTextBytesMax = std::int64_t{1} << 30;

struct TextOptions {
  std::string tokenizer = "bytes";
  // "chars": a vocabulary file; empty: the characters of the text itself.
  // "gpt2": the folder of vocab.json and merges.txt.
  std::string tokenizer_path;
  std::int64_t context = 256;     // tokens of a window
  std::string window = "random";  // training order, or "sequential"
  // OpenTokens() only. Every token is below vocab_size; GPT-2 has 50,257.
  std::int64_t vocab_size = 50257;
  std::string token_type = "u16";  // type in files without a header; or "u32"
  // Target of the positions that pad the last test window: the `ignore_index`
  // of the loss (token_windows.h).
  std::int64_t padding_target = kPaddingTarget;

  // Checks names, a path if the tokenizer reads one, and sizes. Errors blame
  // the field (base/field_error.h).
  absl::Status Validate() const;
};

// Return the names above, for messages and --help.
std::vector<std::string> TokenizerNames();
std::vector<std::string> WindowNames();
std::vector<std::string> TokenTypeNames();

struct TextSplits {
  DatasetPtr train;        // null: only the test files were wanted
  DatasetPtr test;         // null with val_fraction 0
  TokenizerPtr tokenizer;  // null: only token numbers are known
  // Hash of the training text; for files of tokens, of their number and of
  // samples of them.
  std::string content;
  // Sentences for the user about what was assumed of the files.
  std::vector<std::string> notes;
};

// Returns a hash of what each token number stands for.
std::string VocabularyHash(const Tokenizer& tokenizer);

// Returns the tokenizer that `options` name. Only "chars" without a path reads
// `corpus`.
absl::StatusOr<TokenizerPtr> OpenTokenizer(base::FileSystem& files,
                                           const TextOptions& options,
                                           absl::string_view corpus);

// Opens the text file `path`, or EmbeddedCorpus() if the path is empty.
//   kInvalidArgument: `options`, or too short a text for a window; blames the
//                     field. A file that is no text (base/foreign_format.h).
//   other:            from the files.
absl::StatusOr<TextSplits> OpenText(base::FileSystem& files,
                                    const std::string& path,
                                    const TextOptions& options,
                                    const SplitOptions& split);

// Opens the token file `path` (token_file.h); or, if `path` is a folder, its
// train.bin for training and its val.bin (or valid, validation, dev, test.bin),
// if any, for testing, ignoring `split`; or, if its name is a pattern, all
// files with such names as one (token_shards.h). Returns a tokenizer if
// `options` name one with a path.
absl::StatusOr<TextSplits> OpenTokens(std::shared_ptr<base::FileSystem> disk,
                                      const std::string& path,
                                      const TextOptions& options,
                                      const SplitOptions& split);

}  // namespace troupe::data

#endif  // DATA_TEXT_TEXT_SPLITS_H_

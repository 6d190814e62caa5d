// A text as training and test windows: what data.kind = "text" opens.
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
// The text is tokenised as a whole, at the start. The last `val_fraction` of
// its tokens is the test part, in windows that do not overlap and that count
// every token once (token_windows.h). OpenTokens() is for texts that somebody
// else has tokenised: data.kind = "tokens".

#ifndef DATA_TEXT_TEXT_SPLITS_H_
#define DATA_TEXT_TEXT_SPLITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_system.h"
#include "data/dataset.h"
#include "data/split_options.h"
#include "data/text/token_source.h"
#include "data/text/tokenizer.h"

namespace troupe::data {

// Limit on a text that is tokenised at the start; more belongs into a token
// file (token_file.h).
inline constexpr std::int64_t kTextBytesMax = std::int64_t{1} << 30;

struct TextOptions {
  std::string tokenizer = "bytes";
  // "chars": a vocabulary file; empty: the characters of the text itself.
  // "gpt2": the folder of vocab.json and merges.txt.
  std::string tokenizer_path;
  std::int64_t context = 256;     // tokens of a window
  std::string window = "random";  // of training: "random" or "sequential"
  // OpenTokens() only. Every token is below vocab_size; GPT-2 has 50,257.
  std::int64_t vocab_size = 50257;
  std::string token_type = "u16";  // of files without a header; or "u32"

  // Known names, a path where the tokenizer reads one, sizes that can be.
  // Errors blame the field (base/field_error.h).
  absl::Status Validate() const;
};

// The names above, for messages and --help.
std::vector<std::string> TokenizerNames();
std::vector<std::string> WindowNames();
std::vector<std::string> TokenTypeNames();

struct TextSplits {
  DatasetPtr train;
  DatasetPtr test;         // null with val_fraction 0
  TokenizerPtr tokenizer;  // null where only token numbers are known
};

// The tokenizer that `options` name. Only "chars" without a path looks at
// `corpus`.
absl::StatusOr<TokenizerPtr> OpenTokenizer(base::FileSystem& files,
                                           const TextOptions& options,
                                           absl::string_view corpus);

// The text file `path`, or where that is empty EmbeddedCorpus().
//   kInvalidArgument: `options`, or too short a text for a window; blames the
//                     field.
//   other:            from the files.
absl::StatusOr<TextSplits> OpenText(base::FileSystem& files,
                                    const std::string& path,
                                    const TextOptions& options,
                                    const SplitOptions& split);

// The token file `path` (token_file.h); or where `path` is a folder, train.bin
// in it to train and, where it is there, val.bin to test, whatever `split`
// says. Gives a tokenizer where `options` name one with a path.
absl::StatusOr<TextSplits> OpenTokens(base::FileSystem& files,
                                      const std::string& path,
                                      const TextOptions& options,
                                      const SplitOptions& split);

}  // namespace troupe::data

#endif  // DATA_TEXT_TEXT_SPLITS_H_

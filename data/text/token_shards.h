// Opens several files of tokens as one, by a pattern of their names.
//
//   IsTokenPattern("shards/*.bin");                                 // true
//   TROUPE_ASSIGN_OR_RETURN(
//       TokenShards shards,
//       OpenTokenShards(disk, "shards/fineweb_*.bin", file_options));
//   shards.train->size();             // tokens of all files to train on
//   shards.test;                      // those of fineweb_val_000000.bin
//
// The name, behind the last "/", is a pattern of fnmatch(3): "*", "?", "[a-z]".
// The files are sorted by name and follow each other without a gap, so that a
// window may begin in one and end in the next. Names with a word val, valid,
// validation, dev or test are the test part, unless all have one.
//
// Any number of files may be used: at most kOpenTokenFilesMax of them are open,
// the others are opened anew when they are read (file_pool.h).

#ifndef DATA_TEXT_TOKEN_SHARDS_H_
#define DATA_TEXT_TOKEN_SHARDS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "data/text/token_file.h"
#include "data/text/token_source.h"

namespace troupe::data {

inline constexpr std::size_t kTokenFilesMax = 1 << 16;
inline constexpr std::size_t kOpenTokenFilesMax = 128;

struct TokenShards {
  TokenSourcePtr train;
  TokenSourcePtr test;      // null: no name says so, or all do
  bool only_tests = false;  // whether all names say so
  std::string note;  // sentence for the user: which files are in which part
};

bool IsTokenPattern(absl::string_view path);

//   kNotFound:          no file has such a name.
//   kResourceExhausted: more than kTokenFilesMax do.
//   other:              OpenTokenFile(), which names the file.
absl::StatusOr<TokenShards> OpenTokenShards(
    std::shared_ptr<base::FileSystem> files, const std::string& pattern,
    const TokenFileOptions& options);

}  // namespace troupe::data

#endif  // DATA_TEXT_TOKEN_SHARDS_H_
